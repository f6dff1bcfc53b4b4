//! Objects as a server writes them, for tests and for measuring.

use serde_json::{Value, json};

/// A Pod of a Deployment, about 10 KB with its managedFields, 6 KB without.
pub(crate) fn pod(number: usize) -> String {
    let deployment = number / 100;
    let name = format!("checkout-{deployment}-7c9d8b5f4{}-{:05x}", deployment % 10, number * 7919 % 0xf_ffff);
    let uid = format!("{:08x}-6b1f-4c56-9d3e-{:012x}", number * 2_654_435_761 % 0xffff_ffff, number * 48_271);
    let containers: Vec<String> = (0..1 + number % 4 / 3).map(|at| container(number, at)).collect();
    let statuses: Vec<String> = (0..1 + number % 4 / 3).map(|at| container_status(number, at)).collect();
    let managed = managed_fields(containers.len());
    format!(
        concat!(
            r#"{{"metadata":{{"name":"{name}","generateName":"checkout-{deployment}-7c9d8b5f4-","namespace":"team-{namespace}","#,
            r#""uid":"{uid}","resourceVersion":"{version}","creationTimestamp":"2026-03-0{day}T10:{minute:02}:51Z","#,
            r#""labels":{{"app.kubernetes.io/name":"checkout","app.kubernetes.io/instance":"checkout-{deployment}","#,
            r#""app.kubernetes.io/version":"1.{deployment}.3","pod-template-hash":"7c9d8b5f4","topology.example.com/tier":"backend"}},"#,
            r#""annotations":{{"prometheus.io/scrape":"true","prometheus.io/port":"9090","#,
            r#""checksum/config":"4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945","#,
            r##""example.com/owner":"{{\"team\":\"payments\",\"pager\":\"#payments-oncall\"}}"}},"##,
            r#""ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"checkout-{deployment}-7c9d8b5f4","#,
            r#""uid":"aa2f1c7e-0d5b-4a58-8a6c-5d0f3b1c9e{deployment:02x}","controller":true,"blockOwnerDeletion":true}}],"#,
            r#""managedFields":{managed}}},"#,
            r#""spec":{{"volumes":[{{"name":"config","configMap":{{"name":"checkout-config","items":[{{"key":"app.yaml","path":"app.yaml"}}],"defaultMode":420}}}},"#,
            r#"{{"name":"kube-api-access-x{number:04x}","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},"#,
            r#"{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}},"#,
            r#"{{"downwardAPI":{{"items":[{{"path":"namespace","fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.namespace"}}}}]}}}}],"defaultMode":420}}}}],"#,
            r#""containers":[{containers}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","#,
            r#""nodeSelector":{{"kubernetes.io/os":"linux"}},"serviceAccountName":"checkout","serviceAccount":"checkout","#,
            r#""nodeName":"ip-10-0-{node}-17.eu-central-1.compute.internal","securityContext":{{"runAsUser":1000,"runAsNonRoot":true,"fsGroup":1000}},"#,
            r#""affinity":{{"podAntiAffinity":{{"preferredDuringSchedulingIgnoredDuringExecution":[{{"weight":100,"podAffinityTerm":"#,
            r#"{{"labelSelector":{{"matchLabels":{{"app.kubernetes.io/name":"checkout"}}}},"topologyKey":"kubernetes.io/hostname"}}}}]}}}},"#,
            r#""schedulerName":"default-scheduler","tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}},"#,
            r#"{{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}],"#,
            r#""priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"}},"#,
            r#""status":{{"phase":"Running","conditions":[{conditions}],"hostIP":"10.0.{node}.17","hostIPs":[{{"ip":"10.0.{node}.17"}}],"#,
            r#""podIP":"10.244.{node}.{host}","podIPs":[{{"ip":"10.244.{node}.{host}"}}],"startTime":"2026-03-0{day}T10:{minute:02}:51Z","#,
            r#""containerStatuses":[{statuses}],"qosClass":"Burstable"}}}}"#
        ),
        name = name,
        deployment = deployment,
        namespace = deployment % 50,
        uid = uid,
        version = 100_000 + number * 3,
        day = 1 + number % 9,
        minute = number % 60,
        managed = managed,
        number = number % 0xffff,
        containers = containers.join(","),
        node = number % 250,
        host = number % 254,
        conditions = conditions(number),
        statuses = statuses.join(","),
    )
}

fn container(number: usize, at: usize) -> String {
    let env: Vec<String> = (0..6)
        .map(|variable| format!(r#"{{"name":"CHECKOUT_SETTING_{variable}","value":"https://service-{variable}.team.svc.cluster.local:8443/v1"}}"#))
        .collect();
    let probes = if number.is_multiple_of(2) {
        r#""livenessProbe":{"httpGet":{"path":"/healthz","port":"http","scheme":"HTTP"},"initialDelaySeconds":10,"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"readinessProbe":{"httpGet":{"path":"/ready","port":8080,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":5,"successThreshold":1,"failureThreshold":3},"#
    } else {
        ""
    };
    format!(
        r#"{{"name":"main-{at}","image":"registry.example.com/payments/checkout:1.{}.3","args":["--config=/etc/checkout/app.yaml","--log-level=info"],"ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}},{{"name":"metrics","containerPort":9090,"protocol":"TCP"}}],"env":[{},{{"name":"POD_IP","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"status.podIP"}}}}}},{{"name":"PASSWORD","valueFrom":{{"secretKeyRef":{{"name":"checkout-db","key":"password"}}}}}}],"resources":{{"limits":{{"memory":"512Mi"}},"requests":{{"cpu":"250m","memory":"256Mi"}}}},"volumeMounts":[{{"name":"config","readOnly":true,"mountPath":"/etc/checkout"}},{{"name":"kube-api-access-x{:04x}","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}],{probes}"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","securityContext":{{"capabilities":{{"drop":["ALL"]}},"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}}}}"#,
        number / 100,
        env.join(","),
        number % 0xffff,
    )
}

fn container_status(number: usize, at: usize) -> String {
    format!(
        r#"{{"name":"main-{at}","state":{{"running":{{"startedAt":"2026-03-0{}T10:{:02}:55Z"}}}},"lastState":{{}},"ready":true,"restartCount":{},"image":"registry.example.com/payments/checkout:1.{}.3","imageID":"registry.example.com/payments/checkout@sha256:{:064x}","containerID":"containerd://{:064x}","started":true}}"#,
        1 + number % 9,
        number % 60,
        number % 3,
        number / 100,
        number / 100 + 77,
        number * 104_729,
    )
}

fn conditions(number: usize) -> String {
    let types = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    let conditions = types.map(|name| {
        let (day, minute) = (1 + number % 9, number % 60);
        format!(r#"{{"type":"{name}","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-0{day}T10:{minute:02}:55Z"}}"#)
    });
    conditions.join(",")
}

/// What the controller manager and the kubelet own, with `k:{…}` keys as a server writes them.
fn managed_fields(containers: usize) -> Value {
    let leaf = || json!({});
    let container = || {
        json!({".": {}, "f:args": {}, "f:env": {".": {}, "k:{\"name\":\"CHECKOUT_SETTING_0\"}": {".": {}, "f:name": {}, "f:value": {}},
            "k:{\"name\":\"CHECKOUT_SETTING_1\"}": {".": {}, "f:name": {}, "f:value": {}},
            "k:{\"name\":\"CHECKOUT_SETTING_2\"}": {".": {}, "f:name": {}, "f:value": {}},
            "k:{\"name\":\"CHECKOUT_SETTING_3\"}": {".": {}, "f:name": {}, "f:value": {}},
            "k:{\"name\":\"CHECKOUT_SETTING_4\"}": {".": {}, "f:name": {}, "f:value": {}},
            "k:{\"name\":\"CHECKOUT_SETTING_5\"}": {".": {}, "f:name": {}, "f:value": {}},
            "k:{\"name\":\"PASSWORD\"}": {".": {}, "f:name": {}, "f:valueFrom": {".": {}, "f:secretKeyRef": {}}},
            "k:{\"name\":\"POD_IP\"}": {".": {}, "f:name": {}, "f:valueFrom": {".": {}, "f:fieldRef": {}}}},
            "f:image": {}, "f:imagePullPolicy": {}, "f:livenessProbe": {".": {}, "f:failureThreshold": {}, "f:httpGet": {".": {},
            "f:path": {}, "f:port": {}, "f:scheme": {}}, "f:initialDelaySeconds": {}, "f:periodSeconds": {}, "f:successThreshold": {},
            "f:timeoutSeconds": {}}, "f:name": {}, "f:ports": {".": {}, "k:{\"containerPort\":8080,\"protocol\":\"TCP\"}": {".": {},
            "f:containerPort": {}, "f:name": {}, "f:protocol": {}}, "k:{\"containerPort\":9090,\"protocol\":\"TCP\"}": {".": {},
            "f:containerPort": {}, "f:name": {}, "f:protocol": {}}}, "f:resources": {".": {}, "f:limits": {".": {}, "f:memory": {}},
            "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}}}, "f:securityContext": {".": {}, "f:allowPrivilegeEscalation": {},
            "f:capabilities": {".": {}, "f:drop": {}}, "f:readOnlyRootFilesystem": {}}, "f:terminationMessagePath": {},
            "f:terminationMessagePolicy": {}, "f:volumeMounts": {".": {}, "k:{\"mountPath\":\"/etc/checkout\"}": {".": {},
            "f:mountPath": {}, "f:name": {}, "f:readOnly": {}}}})
    };
    let all: serde_json::Map<String, Value> =
        (0..containers).map(|at| (format!("k:{{\"name\":\"main-{at}\"}}"), container())).collect();
    let condition =
        || json!({".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}});
    json!([
        {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": "2026-03-01T10:00:51Z",
         "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:annotations": {".": {}, "f:checksum/config": {},
         "f:example.com/owner": {}, "f:prometheus.io/port": {}, "f:prometheus.io/scrape": {}}, "f:generateName": {}, "f:labels":
         {".": {}, "f:app.kubernetes.io/instance": {}, "f:app.kubernetes.io/name": {}, "f:app.kubernetes.io/version": {},
         "f:pod-template-hash": {}, "f:topology.example.com/tier": {}}, "f:ownerReferences": {".": {},
         "k:{\"uid\":\"aa2f1c7e-0d5b-4a58-8a6c-5d0f3b1c9e00\"}": {}}}, "f:spec": {"f:affinity": {".": {}, "f:podAntiAffinity":
         {".": {}, "f:preferredDuringSchedulingIgnoredDuringExecution": {}}}, "f:containers": all, "f:dnsPolicy": {},
         "f:enableServiceLinks": {}, "f:nodeSelector": {}, "f:restartPolicy": {}, "f:schedulerName": {}, "f:securityContext":
         {".": {}, "f:fsGroup": {}, "f:runAsNonRoot": {}, "f:runAsUser": {}}, "f:serviceAccount": {}, "f:serviceAccountName": {},
         "f:terminationGracePeriodSeconds": {}, "f:volumes": {".": {}, "k:{\"name\":\"config\"}": {".": {}, "f:configMap": {".": {},
         "f:defaultMode": {}, "f:items": leaf(), "f:name": {}}, "f:name": {}}}}}},
        {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": "2026-03-01T10:01:51Z", "fieldsType": "FieldsV1",
         "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"ContainersReady\"}": condition(), "k:{\"type\":\"Initialized\"}":
         condition(), "k:{\"type\":\"PodReadyToStartContainers\"}": condition(), "k:{\"type\":\"Ready\"}": condition()},
         "f:containerStatuses": {}, "f:hostIP": {}, "f:hostIPs": {}, "f:phase": {}, "f:podIP": {}, "f:podIPs": {".": {},
         "k:{\"ip\":\"10.244.17.21\"}": {".": {}, "f:ip": {}}}, "f:startTime": {}}}, "subresource": "status"}
    ])
}
