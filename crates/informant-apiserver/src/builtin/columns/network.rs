//! The columns of Services and of what leads to them.

use serde_json::{Value, json};

use super::{AGE, Column, NAME, Row, cell, named_by, row, text, text_or, wide};

pub(super) fn core(plural: &str) -> Option<&'static [Column]> {
    Some(match plural {
        "services" => SERVICES,
        "endpoints" => ENDPOINTS,
        _ => return None,
    })
}

pub(super) fn of(plural: &str) -> Option<&'static [Column]> {
    Some(match plural {
        "endpointslices" => ENDPOINT_SLICES,
        "ingresses" => INGRESSES,
        "ingressclasses" => INGRESS_CLASSES,
        "ipaddresses" => IP_ADDRESSES,
        "networkpolicies" => NETWORK_POLICIES,
        "servicecidrs" => SERVICE_CIDRS,
        _ => return None,
    })
}

const SERVICES: &[Column] = &[
    NAME,
    text("Type", "spec.type"),
    cell("Cluster-IP", |row| json!(row.texts("spec.clusterIPs").first().copied().unwrap_or("<none>"))),
    cell("External-IP", external_ip),
    cell("Port(s)", service_ports),
    AGE,
    wide(cell("Selector", |row| json!(row.labels("spec.selector")))),
];

const ENDPOINTS: &[Column] = &[NAME, cell("Endpoints", endpoints), AGE];

const ENDPOINT_SLICES: &[Column] =
    &[NAME, text("AddressType", "addressType"), cell("Ports", slice_ports), cell("Endpoints", slice_endpoints), AGE];

const INGRESSES: &[Column] = &[
    NAME,
    text_or("Class", "spec.ingressClassName", "<none>"),
    cell("Hosts", hosts),
    cell("Address", |row| json!(load_balancer(*row).join(","))),
    cell("Ports", |row| json!(if row.count("spec.tls") > 0 { "80, 443" } else { "80" })),
    AGE,
];

const INGRESS_CLASSES: &[Column] =
    &[named_by(ingress_class_name), text("Controller", "spec.controller"), cell("Parameters", parameters), AGE];

const IP_ADDRESSES: &[Column] = &[NAME, cell("ParentRef", parent_ref)];

const NETWORK_POLICIES: &[Column] = &[NAME, cell("Pod-Selector", |row| json!(row.selector("spec.podSelector"))), AGE];

const SERVICE_CIDRS: &[Column] = &[NAME, cell("CIDRs", |row| json!(row.texts("spec.cidrs").join(","))), AGE];

/// Addresses of a load balancer, sorted, each once.
fn load_balancer(row: Row<'_>) -> Vec<&str> {
    let ingress = row.items("status.loadBalancer.ingress");
    let mut addresses: Vec<&str> = ingress.map(|entry| entry.text_or("ip", entry.text("hostname"))).collect();
    addresses.retain(|address| !address.is_empty());
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

fn external_ip(row: &Row<'_>) -> Value {
    let external = row.texts("spec.externalIPs");
    let (mut addresses, missing) = match row.text("spec.type") {
        "ExternalName" => return json!(row.text("spec.externalName")),
        "LoadBalancer" => (load_balancer(*row), "<pending>"),
        _ => (Vec::new(), "<none>"),
    };
    addresses.extend(external);
    json!(if addresses.is_empty() { missing.to_owned() } else { addresses.join(",") })
}

fn service_ports(row: &Row<'_>) -> Value {
    let port = |port: Row<'_>| match port.integer("nodePort") {
        0 => format!("{}/{}", port.integer("port"), port.text("protocol")),
        node => format!("{}:{node}/{}", port.integer("port"), port.text("protocol")),
    };
    let ports: Vec<String> = row.items("spec.ports").map(port).collect();
    json!(if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") })
}

fn endpoints(row: &Row<'_>) -> Value {
    if row.count("subsets") == 0 {
        return json!("<none>");
    }
    let mut list = Vec::new();
    for subset in row.items("subsets") {
        let ips: Vec<&str> = subset.items("addresses").map(|address| address.text("ip")).collect();
        if subset.count("ports") == 0 {
            list.extend(ips.iter().map(|ip| (*ip).to_owned()));
        }
        for port in subset.items("ports") {
            list.extend(ips.iter().map(|ip| host_and_port(ip, port.integer("port"))));
        }
    }
    json!(row::with_more(&list, 3, ","))
}

fn host_and_port(ip: &str, port: i64) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

fn slice_ports(row: &Row<'_>) -> Value {
    let ports: Vec<String> = row.items("ports").map(|port| port.shown_or("port", port.text_or("name", "*"))).collect();
    json!(or_unset(&ports))
}

fn slice_endpoints(row: &Row<'_>) -> Value {
    let addresses: Vec<String> =
        row.items("endpoints").flat_map(|endpoint| endpoint.texts("addresses")).map(str::to_owned).collect();
    json!(or_unset(&addresses))
}

fn or_unset(list: &[String]) -> String {
    if list.is_empty() { "<unset>".to_owned() } else { row::with_more(list, 3, ",") }
}

fn hosts(row: &Row<'_>) -> Value {
    let rules = row.count("spec.rules");
    let hosts: Vec<&str> =
        row.items("spec.rules").map(|rule| rule.text("host")).filter(|host| !host.is_empty()).collect();
    json!(match hosts.as_slice() {
        [] => "*".to_owned(),
        [first, second, third, _, ..] => format!("{first},{second},{third} + {} more...", rules - 3),
        few => few.join(","),
    })
}

fn ingress_class_name(row: &Row<'_>) -> Value {
    let annotations = row.at("metadata.annotations");
    let is_default = annotations.and_then(|all| all.get("ingressclass.kubernetes.io/is-default-class"));
    let mark = if is_default.and_then(Value::as_str) == Some("true") { " (default)" } else { "" };
    json!(format!("{}{mark}", row.text("metadata.name")))
}

fn parameters(row: &Row<'_>) -> Value {
    if !row.has("spec.parameters") {
        return json!("<none>");
    }
    let group = row.text("spec.parameters.apiGroup");
    let separator = if group.is_empty() { "" } else { "." };
    json!(format!("{}{separator}{group}/{}", row.text("spec.parameters.kind"), row.text("spec.parameters.name")))
}

fn parent_ref(row: &Row<'_>) -> Value {
    let Some(parent) = row.at("spec.parentRef").map(|parent| row.of(parent)) else { return json!("<none>") };
    let mut parts = vec![match parent.text("group") {
        "" => parent.text("resource").to_lowercase(),
        group => format!("{}.{group}", parent.text("resource")).to_lowercase(),
    }];
    parts.extend(
        [parent.text("namespace"), parent.text("name")].into_iter().filter(|t| !t.is_empty()).map(str::to_owned),
    );
    json!(parts.join("/"))
}
