//! The kubeconfig that leads to a listener.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// Writes a kubeconfig with one cluster, one user and one context.
pub(super) fn write(url: &str, ca: Option<&str>, token: &str) -> String {
    let mut cluster = json!({"server": url});
    if let Some(ca) = ca {
        cluster["certificate-authority-data"] = json!(STANDARD.encode(ca));
    }
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "informant",
        "clusters": [{"name": "informant", "cluster": cluster}],
        "users": [{"name": "informant", "user": {"token": token}}],
        "contexts": [{
            "name": "informant",
            "context": {"cluster": "informant", "user": "informant", "namespace": "default"},
        }],
    });
    // JSON is YAML too, for the case that cannot be.
    serde_saphyr::to_string(&config).unwrap_or_else(|_| config.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubeconfig_is_yaml_with_the_authority_inside() {
        let text = write("https://127.0.0.1:1", Some("PEM"), "t");
        let config: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(config["clusters"][0]["cluster"]["certificate-authority-data"], json!("UEVN"));
        assert_eq!(config["users"][0]["user"]["token"], json!("t"));
        assert!(!write("http://127.0.0.1:1", None, "t").contains("certificate"));
    }
}
