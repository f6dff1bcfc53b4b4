//! A certificate authority for one listener, and the server certificate that it signs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// Names under which the server is reached, besides its address.
const NAMES: &[&str] = &["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];

/// A key with its certificate, and the authority behind it.
pub(super) struct Identity {
    ca_pem: String,
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

// === impl Identity ===

impl Identity {
    /// Makes a fresh authority, and a certificate for loopback and `address`.
    pub(super) fn new(address: IpAddr) -> Result<Self, String> {
        Self::make(address).map_err(|error| error.to_string())
    }

    fn make(address: IpAddr) -> Result<Self, rcgen::Error> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.distinguished_name.push(DnType::CommonName, "informant");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign];
        let authority_key = KeyPair::generate()?;
        let ca_pem = authority.self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(authority, authority_key);

        let mut server = CertificateParams::new(NAMES.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
        server.distinguished_name.push(DnType::CommonName, "informant-apiserver");
        let mut addresses = vec![IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST), address];
        addresses.dedup();
        server.subject_alt_names.extend(addresses.into_iter().map(SanType::IpAddress));
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = server.signed_by(&key, &issuer)?;
        Ok(Self { ca_pem, certificate: certificate.der().clone(), key: key.serialize_der() })
    }

    /// The authority's certificate as PEM.
    pub(super) fn into_ca_pem(self) -> String {
        self.ca_pem
    }

    /// An acceptor that offers HTTP/2 and HTTP/1.1.
    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.clone()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .map_err(|error| error.to_string())?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}
