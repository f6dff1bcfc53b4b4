//! The columns of storage and device kinds; those of the core group too.

use serde_json::{Value, json};

use super::{AGE, Column, NAME, NAME_AND_AGE, Row, boolean, cell, count, text, text_or, wide};

pub(super) fn of(plural: &str) -> Option<&'static [Column]> {
    Some(match plural {
        "csidrivers" => CSI_DRIVERS,
        "csinodes" => CSI_NODES,
        "storageclasses" => STORAGE_CLASSES,
        "volumeattachments" => VOLUME_ATTACHMENTS,
        "volumeattributesclasses" => VOLUME_ATTRIBUTES_CLASSES,
        "deviceclasses" | "resourceclaimtemplates" => NAME_AND_AGE,
        "devicetaintrules" => DEVICE_TAINT_RULES,
        "resourceclaims" => RESOURCE_CLAIMS,
        "resourceslices" => RESOURCE_SLICES,
        _ => return None,
    })
}

pub(super) const PERSISTENT_VOLUMES: &[Column] = &[
    NAME,
    text_or("Capacity", "spec.capacity.storage", "0"),
    cell("Access Modes", |row| json!(access_modes(*row, "spec.accessModes"))),
    text("Reclaim Policy", "spec.persistentVolumeReclaimPolicy"),
    cell("Status", phase),
    cell("Claim", claim),
    cell("StorageClass", |row| json!(storage_class(*row))),
    text_or("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
    text("Reason", "status.reason"),
    AGE,
    wide(text_or("VolumeMode", "spec.volumeMode", "<unset>")),
];

pub(super) const PERSISTENT_VOLUME_CLAIMS: &[Column] = &[
    NAME,
    cell("Status", phase),
    text("Volume", "spec.volumeName"),
    cell("Capacity", |row| json!(if_bound(*row, row.shown_or("status.capacity.storage", "0")))),
    cell("Access Modes", |row| json!(if_bound(*row, access_modes(*row, "status.accessModes")))),
    cell("StorageClass", |row| json!(storage_class(*row))),
    text_or("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
    AGE,
    wide(text_or("VolumeMode", "spec.volumeMode", "<unset>")),
];

const CSI_DRIVERS: &[Column] = &[
    NAME,
    boolean("AttachRequired", "spec.attachRequired", true),
    boolean("PodInfoOnMount", "spec.podInfoOnMount", false),
    boolean("StorageCapacity", "spec.storageCapacity", false),
    cell("TokenRequests", token_requests),
    boolean("RequiresRepublish", "spec.requiresRepublish", false),
    cell("Modes", |row| match row.texts("spec.volumeLifecycleModes").join(",") {
        modes if modes.is_empty() => json!("<none>"),
        modes => json!(modes),
    }),
    AGE,
];

const CSI_NODES: &[Column] = &[NAME, count("Drivers", "spec.drivers"), AGE];

const STORAGE_CLASSES: &[Column] = &[
    NAME,
    text("Provisioner", "provisioner"),
    text_or("ReclaimPolicy", "reclaimPolicy", "Delete"),
    text_or("VolumeBindingMode", "volumeBindingMode", "Immediate"),
    super::typed("string", boolean("AllowVolumeExpansion", "allowVolumeExpansion", false)),
    AGE,
];

const VOLUME_ATTACHMENTS: &[Column] = &[
    NAME,
    text("Attacher", "spec.attacher"),
    text("PV", "spec.source.persistentVolumeName"),
    text("Node", "spec.nodeName"),
    boolean("Attached", "status.attached", false),
    AGE,
];

const VOLUME_ATTRIBUTES_CLASSES: &[Column] = &[NAME, text("DriverName", "driverName"), AGE];

const DEVICE_TAINT_RULES: &[Column] =
    &[
        NAME,
        text("Key", "spec.taint.key"),
        text("Value", "spec.taint.value"),
        text("Effect", "spec.taint.effect"),
        cell("TimeAdded", |row| {
            if row.has("spec.taint.timeAdded") { json!(row.age("spec.taint.timeAdded")) } else { json!("") }
        }),
        AGE,
    ];

const RESOURCE_CLAIMS: &[Column] = &[NAME, cell("State", claim_state), AGE];

const RESOURCE_SLICES: &[Column] =
    &[NAME, text("Node", "spec.nodeName"), text("Driver", "spec.driver"), text("Pool", "spec.pool.name"), AGE];

fn phase(row: &Row<'_>) -> Value {
    json!(if row.is_terminating() { "Terminating" } else { row.text("status.phase") })
}

fn if_bound(row: Row<'_>, shown: String) -> String {
    if row.text("spec.volumeName").is_empty() { String::new() } else { shown }
}

fn access_modes(row: Row<'_>, path: &str) -> String {
    let modes = row.texts(path);
    let short =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let shown: Vec<&str> = short.iter().filter(|(mode, _)| modes.contains(mode)).map(|(_, short)| *short).collect();
    shown.join(",")
}

fn claim(row: &Row<'_>) -> Value {
    if !row.has("spec.claimRef") {
        return json!("");
    }
    json!(format!("{}/{}", row.text("spec.claimRef.namespace"), row.text("spec.claimRef.name")))
}

/// An old annotation wins over the field.
fn storage_class(row: Row<'_>) -> &str {
    let annotations = row.at("metadata.annotations");
    let beta = annotations.and_then(|all| all.get("volume.beta.kubernetes.io/storage-class"));
    beta.and_then(Value::as_str).unwrap_or_else(|| row.text("spec.storageClassName"))
}

fn token_requests(row: &Row<'_>) -> Value {
    if !row.has("spec.tokenRequests") {
        return json!("<unset>");
    }
    let audiences: Vec<&str> = row.items("spec.tokenRequests").map(|request| request.text("audience")).collect();
    json!(audiences.join(","))
}

fn claim_state(row: &Row<'_>) -> Value {
    let (deleted, allocated) = (row.is_terminating(), row.has("status.allocation"));
    let reserved = allocated && row.count("status.reservedFor") > 0;
    let states =
        [(deleted, "deleted"), (!allocated && !deleted, "pending"), (allocated, "allocated"), (reserved, "reserved")];
    json!(states.iter().filter(|(holds, _)| *holds).map(|(_, state)| *state).collect::<Vec<_>>().join(","))
}
