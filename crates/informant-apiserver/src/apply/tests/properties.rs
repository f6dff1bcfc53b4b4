//! What holds for any applies, of whatever fields.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Fields of the custom kind, for random configurations.
fn random_spec() -> impl Strategy<Value = Value> {
    let text = || prop_oneof![Just("1"), Just("2")].prop_map(|text| json!(text));
    let texts = || prop::collection::btree_map("[ab]", text(), 0..3).prop_map(|map| json!(map));
    let ports = prop::collection::btree_map(1..3i64, prop::option::of(text()), 0..3).prop_map(|ports| {
        let port = |(port, name): (i64, Option<Value>)| match name {
            Some(name) => json!({"port": port, "name": name}),
            None => json!({"port": port}),
        };
        ports.into_iter().map(port).collect::<Value>()
    });
    let fields = (
        prop::option::of(0..3i64),
        prop::option::of(prop::sample::subsequence(vec!["a", "b", "c"], 0..=3).prop_shuffle()),
        prop::option::of(ports),
        prop::option::of(texts()),
        prop::option::of(texts()),
    );
    fields.prop_map(|(size, tags, ports, gran, atom)| {
        let fields = json!({"size": size, "tags": tags, "ports": ports, "gran": gran, "atom": atom});
        fields.as_object().unwrap().clone().into_iter().filter(|(_, value)| !value.is_null()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn applying_twice_is_applying_once(first in random_spec(), second in random_spec()) {
        let mut cluster = widget();
        cluster.apply("one", spec(first)).force("two", spec(second.clone()));
        let once = cluster.live.clone();
        cluster.force("two", spec(second));
        prop_assert_eq!(&cluster.live, &once);
    }

    #[test]
    fn what_is_applied_is_there_and_giving_it_up_restores_the_rest(first in random_spec(), second in random_spec()) {
        // An empty list is owned by nobody, and so stays when it's given up; an empty object makes way for what is in it.
        let empty = |value: &Value| value.as_object().is_some_and(Map::is_empty) || value == &json!([]);
        prop_assume!(!empty(&second) && !second.as_object().unwrap().values().any(empty));
        let mut cluster = widget();
        cluster.apply("one", spec(first));
        let before = cluster.live.clone();
        if cluster.try_apply("two", spec(second.clone()), false).is_ok() {
            let schema = cluster.schema.clone();
            let place = Place::root(schema.view());
            let wanted = field_set(place, &json!({"spec": second}));
            let present = field_set(place, cluster.live.as_ref().unwrap());
            prop_assert!(wanted.difference(&present).is_empty(), "{}", wanted.difference(&present));
            cluster.apply("two", json!({}));
            let fields = |object: &Option<Value>| field_set(place, &without_managed_fields(object.as_ref().unwrap()));
            // The second one may have brought an empty list or object that the first one had too, or an order.
            prop_assert!(fields(&before).difference(&fields(&cluster.live)).is_empty());
            let left = fields(&cluster.live).difference(&fields(&before));
            prop_assert!(left.is_empty(), "left: {}", left);
        }
    }

    #[test]
    fn every_applied_field_has_an_owner(steps in prop::collection::vec((0..3usize, random_spec()), 1..6)) {
        let mut cluster = widget();
        for (manager, fields) in steps {
            cluster.force(["one", "two", "three"][manager], spec(fields));
        }
        let live = without_managed_fields(cluster.live.as_ref().unwrap());
        let place = Place::root(cluster.schema.view());
        let managed = ManagedFields::read(cluster.live.as_ref().unwrap()).unwrap();
        let owned = managed.iter().fold(FieldSet::default(), |owned, (_, entry)| owned.union(&entry.fields));
        let spec = if live["spec"].is_null() { json!({}) } else { json!({"spec": live["spec"]}) };
        let present = field_set(place, &spec);
        prop_assert!(present.difference(&owned).is_empty(), "unowned: {}", present.difference(&owned));
    }
}
