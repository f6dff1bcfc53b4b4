//! What the server hands out to Services: cluster addresses and node ports.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::object::at_path;
use crate::registry::Registry;
use crate::resource::Resource;
use crate::status::{Reason, Status};

/// The range of node ports.
const NODE_PORTS: std::ops::Range<u16> = 30_000..32_768;
/// How many addresses or ports are drawn before the pool counts as empty.
const DRAWS: usize = 10_000;

impl Registry {
    /// Fills in what a Service leaves to the server; an update keeps what the Service has.
    ///
    /// # Errors
    /// 500 when nothing is free.
    pub(super) fn allocate(&self, resource: &Resource, old: Option<&Value>, new: &mut Value) -> Result<(), Status> {
        if !(resource.group.is_empty() && resource.plural == "services") {
            return Ok(());
        }
        let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(()) };
        let kind = spec.get("type").and_then(Value::as_str).unwrap_or("ClusterIP").to_owned();
        if kind == "ExternalName" {
            return Ok(());
        }
        let old_spec = old.and_then(|old| old.get("spec"));
        self.allocate_address(old_spec, spec)?;
        if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
            self.allocate_ports(old_spec, spec)?;
        }
        Ok(())
    }

    fn allocate_address(&self, old: Option<&Value>, spec: &mut Map<String, Value>) -> Result<(), Status> {
        let text = |spec: &Map<String, Value>| spec.get("clusterIP").and_then(Value::as_str).unwrap_or("").to_owned();
        let mut address = text(spec);
        if address.is_empty() {
            address = old.and_then(Value::as_object).map(text).unwrap_or_default();
        }
        if address.is_empty() {
            let taken = self.taken(|service| {
                vec![at_path(service, "spec.clusterIP").and_then(Value::as_str).unwrap_or("").to_owned()]
            });
            address = self.draw(&taken, |rng| format!("10.96.{}.{}", rng.u8(..), rng.u8(1..255)), "cluster IP")?;
        }
        spec.insert("clusterIPs".into(), json!([address]));
        spec.insert("clusterIP".into(), json!(address));
        Ok(())
    }

    fn allocate_ports(&self, old: Option<&Value>, spec: &mut Map<String, Value>) -> Result<(), Status> {
        let ports = |service: &Value| -> Vec<u64> {
            let ports = at_path(service, "spec.ports").and_then(Value::as_array);
            ports.into_iter().flatten().filter_map(|port| port.get("nodePort").and_then(Value::as_u64)).collect()
        };
        let Some(list) = spec.get_mut("ports").and_then(Value::as_array_mut) else { return Ok(()) };
        let mut taken = self.taken(ports);
        for port in list.iter_mut().filter_map(Value::as_object_mut) {
            if port.get("nodePort").and_then(Value::as_u64).unwrap_or(0) != 0 {
                continue;
            }
            let kept = old.and_then(|old| same_port(old, port));
            let number = match kept {
                Some(number) => number,
                None => self.draw(&taken, |rng| u64::from(rng.u16(NODE_PORTS)), "node port")?,
            };
            taken.insert(number);
            port.insert("nodePort".into(), json!(number));
        }
        Ok(())
    }

    fn taken<T: Eq + std::hash::Hash>(&self, of: impl Fn(&Value) -> Vec<T>) -> HashSet<T> {
        let storage = crate::resource::StorageId { group: "".into(), plural: "services".into() };
        self.all(&storage).iter().flat_map(|service| of(service)).collect()
    }

    fn draw<T: Eq + std::hash::Hash>(
        &self,
        taken: &HashSet<T>,
        make: impl Fn(&mut fastrand::Rng) -> T,
        what: &str,
    ) -> Result<T, Status> {
        let mut rng = self.rng();
        (0..DRAWS)
            .map(|_| make(&mut rng))
            .find(|drawn| !taken.contains(drawn))
            .ok_or_else(|| Status::new(Reason::InternalError, format!("failed to allocate a {what}: range is full")))
    }
}

/// The node port that a Service had for the same port before.
fn same_port(old: &Value, port: &Map<String, Value>) -> Option<u64> {
    let ports = old.get("ports").and_then(Value::as_array)?;
    let same = ports.iter().find(|other| other.get("port") == port.get("port"))?;
    same.get("nodePort").and_then(Value::as_u64)
}
