//! Holds paths and types against the table of built-in kinds. What the table doesn't know passes.

use crate::path::Step;
use crate::table::{Place, Table, table};
use crate::types::Known;

/// What a path leads to in objects of this kind; `None` if the kind isn't built in. An error says what's wrong, and what may be meant.
pub(crate) fn resolve(api_version: &str, kind: &str, steps: &[Step]) -> Result<Option<Place>, String> {
    let table = table();
    let Some(root) = table.kind(api_version, kind) else { return Ok(None) };
    let mut place = Place::Object(root);
    for (position, step) in steps.iter().enumerate() {
        let (before, after) = steps.split_at(position);
        let walk = Way { table, kind, root, before, after };
        place = walk.step(place, step)?;
    }
    Ok(Some(place))
}

/// Says if a kind isn't one, though its version is.
pub(crate) fn kind(api_version: &str, kind: &str) -> Result<(), String> {
    let table = table();
    if table.kind(api_version, kind).is_some() {
        return Ok(());
    }
    let versions: Vec<&str> = table.kinds().filter(|(_, name)| *name == kind).map(|(version, _)| version).collect();
    let is_built_in = |version: &str| !version.contains('/') || table.kinds().any(|(known, _)| known == version);
    if let Some(version) = versions.iter().min() {
        // A custom resource may be called like a built-in kind, in a group of its own.
        let meant = is_built_in(api_version)
            || versions.iter().any(|version| version.split('/').next() == api_version.split('/').next());
        return if meant {
            Err(format!("`{api_version}` has no kind `{kind}`; did you mean api_version = \"{version}\"?"))
        } else {
            Ok(())
        };
    }
    let kinds = table.kinds().filter(|(version, _)| *version == api_version).map(|(_, name)| name);
    match nearest(kind, kinds) {
        Some(near) => Err(format!("`{api_version}` has no kind `{kind}`; did you mean `{near}`?")),
        None => Ok(()),
    }
}

/// Whether a type may hold what's there.
pub(crate) fn fits(place: &Place, known: &Known) -> bool {
    match (place, known) {
        (Place::Any, _) | (_, Known::Other) => true,
        (place, Known::Option(inner)) => fits(place, inner),
        (Place::Text | Place::TextOf(_), known) => known.is_text(),
        (Place::Boolean, known) => *known == Known::Boolean,
        (Place::Integer, known) => matches!(known, Known::Integer | Known::Float),
        (Place::Number, known) => *known == Known::Float,
        (Place::IntegerOrText, _) => false,
        (Place::List(place), Known::List(inner)) => fits(place, inner),
        (Place::Map(place), Known::Map(_, inner)) => fits(place, inner),
        (Place::Object(_), Known::Map(_, inner)) => **inner == Known::Other,
        _ => false,
    }
}

/// What's there, in words.
pub(crate) fn describe(place: &Place) -> String {
    match place {
        Place::Text => "a text".to_owned(),
        Place::TextOf(what) => (*what).to_owned(),
        Place::Boolean => "a boolean".to_owned(),
        Place::Integer => "an integer".to_owned(),
        Place::Number => "a number".to_owned(),
        Place::IntegerOrText => "an integer or a text, which IntOrString reads".to_owned(),
        Place::Object(_) | Place::Embedded(_) => "an object".to_owned(),
        Place::List(inner) => format!("a list of {}", describe_many(inner)),
        Place::Map(inner) => format!("a map of {}", describe_many(inner)),
        Place::Any => "anything".to_owned(),
    }
}

fn describe_many(place: &Place) -> &'static str {
    match place {
        Place::Text => "texts",
        Place::TextOf(_) => "texts with a meaning",
        Place::Boolean => "booleans",
        Place::Integer => "integers",
        Place::Number => "numbers",
        Place::IntegerOrText => "integers or texts",
        Place::Object(_) | Place::Embedded(_) => "objects",
        Place::List(_) => "lists",
        Place::Map(_) => "maps",
        Place::Any => "anything",
    }
}

/// A path, written from its steps.
pub(crate) fn render(steps: &[Step]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Key(key) if key.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_')) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
            }
            Step::Key(key) => path.push_str(&format!("[{key:?}]")),
            Step::Each => path.push_str("[*]"),
            Step::At(position) => path.push_str(&format!("[{position}]")),
            Step::Where(key, value) => path.push_str(&format!("[{key}={value}]")),
        }
    }
    path
}

/// One step on a path.
struct Way<'a> {
    table: &'static Table,
    kind: &'a str,
    root: usize,
    before: &'a [Step],
    /// The step itself and those after it.
    after: &'a [Step],
}

impl Way<'_> {
    fn step(&self, place: Place, step: &Step) -> Result<Place, String> {
        let Self { kind, before, after, .. } = self;
        let here = render(before);
        match (place, step) {
            (Place::Any, _) => Ok(Place::Any),
            (Place::Object(message), Step::Key(key)) => self.field(message, key),
            (Place::Map(inner), Step::Key(_)) => Ok(*inner),
            (Place::List(inner), Step::Each | Step::At(_)) => Ok(*inner),
            (Place::List(inner), Step::Where(key, _)) => {
                let Place::Object(message) = *inner else {
                    return Err(format!(
                        "`{here}` of {kind} is {}, and `{key}` is no field of these",
                        describe(&Place::List(inner))
                    ));
                };
                let fields = self.table.fields(message);
                match fields.iter().find(|field| field.name == key) {
                    Some(field) if !matches!(field.place, Place::Object(_) | Place::List(_) | Place::Map(_)) => {
                        Ok(Place::Object(message))
                    }
                    Some(field) => Err(format!(
                        "`{here}` of {kind} can't be selected from by `{key}`, which is {}",
                        describe(&field.place)
                    )),
                    None => Err(format!(
                        "the elements of `{here}` of {kind} have no field `{key}`{}",
                        did_you_mean(nearest(key, fields.iter().map(|field| field.name)).map(str::to_owned))
                    )),
                }
            }
            (Place::List(_), Step::Key(_)) => {
                let rest = render(after);
                let choice = format!(
                    "`{here}[*].{rest}` for all of them, `{here}[name=…].{rest}` or `{here}[0].{rest}` for one"
                );
                Err(format!("`{here}` of {kind} is a list: write {choice}"))
            }
            (Place::Text, Step::Key(key)) if self.is_in_map() => {
                // Most likely a key with dots in it.
                let (map, first) = match before {
                    [map @ .., Step::Key(first)] => (render(map), first.as_str()),
                    _ => (here.clone(), ""),
                };
                Err(format!(
                    "`{here}` of {kind} is a text and has no field `{key}`; a key with dots is written in quotes: `{map}[\"{first}.{}\"]`",
                    render(after)
                ))
            }
            (place, Step::Key(key)) => {
                Err(format!("`{here}` of {kind} is {} and has no field `{key}`", describe(&place)))
            }
            (place, _) => Err(format!("`{here}` of {kind} is {} and not a list", describe(&place))),
        }
    }

    fn field(&self, message: usize, key: &str) -> Result<Place, String> {
        let Self { table, kind, root, before, .. } = self;
        let fields = table.fields(message);
        if let Some(field) = fields.iter().find(|field| field.name == key) {
            return Ok(field.place.clone());
        }
        if before.is_empty() && matches!(key, "apiVersion" | "kind") {
            return Err(format!("`{key}` isn't in the items of a list; it's what the struct says already"));
        }
        let at = |name: &str| render(&[*before, &[Step::Key(name.to_owned())]].concat());
        let near = nearest(key, fields.iter().map(|field| field.name)).map(at);
        let meant = near.or_else(|| elsewhere(table, *root, key));
        Err(format!("{kind} has no field `{}`{}", at(key), did_you_mean(meant)))
    }

    /// Whether the last step was to a key of a map.
    fn is_in_map(&self) -> bool {
        let mut place = Place::Object(self.root);
        let Some((_, before)) = self.before.split_last() else { return false };
        for (position, step) in before.iter().enumerate() {
            let way = Way { before: before.get(..position).unwrap_or_default(), after: &[], ..*self };
            let Ok(next) = way.step(place, step) else { return false };
            place = next;
        }
        matches!(place, Place::Map(_))
    }
}

/// Where else in an object there's a field of this name: the place that's nearest to the top.
fn elsewhere(table: &Table, root: usize, name: &str) -> Option<String> {
    let mut level = vec![(String::new(), root)];
    for _ in 0..3 {
        let mut next = Vec::new();
        for (path, message) in &level {
            for field in table.fields(*message) {
                let here = if path.is_empty() { field.name.to_owned() } else { format!("{path}.{}", field.name) };
                if field.name == name {
                    return Some(here);
                }
                match &field.place {
                    Place::Object(message) => next.push((here, *message)),
                    Place::List(inner) => {
                        if let Place::Object(message) = **inner {
                            next.push((format!("{here}[*]"), message));
                        }
                    }
                    _ => {}
                }
            }
        }
        level = next;
    }
    None
}

fn did_you_mean(meant: Option<String>) -> String {
    meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
}

/// The name that's most like this one, if any is at all.
fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let limit = (name.len() / 3).clamp(1, 3);
    let lower = name.to_ascii_lowercase();
    let distances = names.map(|known| (distance(&lower, &known.to_ascii_lowercase()), known));
    distances.filter(|(distance, _)| *distance <= limit).min().map(|(_, known)| known)
}

/// How many characters have to be put in, taken out or changed to make one text the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, from) in from.chars().enumerate() {
        let mut diagonal = line;
        let mut left = line + 1;
        for (cell, to) in row.iter_mut().skip(1).zip(&to) {
            let above = *cell;
            left = (diagonal + usize::from(from != *to)).min(above + 1).min(left + 1);
            diagonal = above;
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::parse;

    fn place(path: &str) -> Result<Option<Place>, String> {
        resolve("v1", "Pod", &parse(path).expect(path))
    }

    fn error(path: &str) -> String {
        place(path).expect_err(path)
    }

    #[test]
    fn the_places_of_a_pod_are_found() {
        assert_eq!(place("spec.nodeName"), Ok(Some(Place::Text)));
        assert_eq!(
            place("status.conditions[type=Ready].lastTransitionTime"),
            Ok(Some(Place::TextOf("a time, as a text")))
        );
        assert_eq!(place("spec.containers[*].ports[0].containerPort"), Ok(Some(Place::Integer)));
        assert_eq!(place("metadata.labels"), Ok(Some(Place::Map(Box::new(Place::Text)))));
        assert_eq!(place("metadata.annotations[\"a/b\"]"), Ok(Some(Place::Text)));
        // A message that's shown in the place of its parent.
        assert_eq!(place("spec.volumes[name=a].configMap.name"), Ok(Some(Place::Text)));
        assert_eq!(resolve("example.com/v1", "Pod", &[]), Ok(None));
    }

    #[test]
    fn a_wrong_path_says_what_may_be_meant() {
        assert_eq!(error("spec.nodeNam"), "Pod has no field `spec.nodeNam`; did you mean `spec.nodeName`?");
        assert_eq!(error("nodeName"), "Pod has no field `nodeName`; did you mean `spec.nodeName`?");
        assert_eq!(error("spec.zzz"), "Pod has no field `spec.zzz`");
        assert!(error("spec.containers.image").contains("write `spec.containers[*].image` for all of them"));
        assert!(error("status.conditions[typ=Ready].status").ends_with("have no field `typ`; did you mean `type`?"));
        assert!(error("spec[*].x").ends_with("is an object and not a list"));
        assert!(error("spec.nodeName.x").contains("is a text and has no field `x`"));
        assert!(error("metadata.labels.app.kubernetes.io").contains("`metadata.labels[\"app.kubernetes.io\"]`"));
        assert!(error("kind").contains("isn't in the items of a list"));
        assert!(error("spec.containers[resources=x].name").contains("can't be selected from by `resources`"));
    }

    #[test]
    fn a_wrong_kind_says_what_may_be_meant() {
        assert!(kind("v1", "Deployment").expect_err("it's in apps").contains("api_version = \"apps/v1\""));
        assert!(kind("apps/v1beta1", "Deployment").is_err());
        assert!(kind("v1", "Pood").expect_err("no kind").contains("`Pod`"));
        for (version, name) in
            [("apps/v1", "Deployment"), ("traefik.io/v1", "Ingress"), ("a.b/v1", "Pod"), ("v1", "Brandnew")]
        {
            assert_eq!(kind(version, name), Ok(()), "{version} {name}");
        }
    }
}
