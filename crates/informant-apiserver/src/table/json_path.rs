//! The part of JSON path that printer columns use: `.spec.a`, `.a["b.c"]`, `.a[0]`, `.a[-1]`, `.a[*]`,
//! `.a[?(@.type=="Ready")].status`. A path that isn't understood finds nothing, as on a real server.

use serde_json::Value;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    Filter(Filter),
}

/// `?(@.field OPERATOR literal)`, or `?(@.field)` for "is there".
#[derive(Debug, Clone, PartialEq)]
struct Filter {
    path: Vec<String>,
    test: Option<(Operator, Value)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

// === impl JsonPath ===

impl JsonPath {
    /// Parses a path, with or without its leading dot and braces.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text).trim();
        let mut rest = text.strip_prefix('$').unwrap_or(text);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('[') {
                let end = end_of_brackets(inner)?;
                steps.push(Step::in_brackets(inner.get(..end)?.trim())?);
                rest = inner.get(end + 1..)?;
            } else {
                let name = rest.strip_prefix('.').unwrap_or(rest);
                let end = end_of_name(name);
                match name.get(..end)? {
                    "" if rest == "." => {}
                    "" if name.starts_with('[') => {}
                    "" => return None,
                    "*" => steps.push(Step::All),
                    name => steps.push(Step::Field(name.replace("\\.", "."))),
                }
                rest = name.get(end..)?;
            }
        }
        Some(Self { steps })
    }

    /// The first value that the path leads to.
    pub(super) fn first<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        walk(&self.steps, value)
    }
}

fn walk<'v>(steps: &[Step], value: &'v Value) -> Option<&'v Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    match step {
        Step::Field(name) => walk(rest, value.get(name)?),
        Step::Index(index) => {
            let list = value.as_array()?;
            let index = if *index < 0 { i64::try_from(list.len()).ok()? + index } else { *index };
            walk(rest, list.get(usize::try_from(index).ok()?)?)
        }
        Step::All => match value {
            Value::Array(list) => list.iter().find_map(|item| walk(rest, item)),
            Value::Object(fields) => fields.values().find_map(|item| walk(rest, item)),
            _ => None,
        },
        Step::Filter(filter) => value.as_array()?.iter().filter(|item| filter.holds(item)).find_map(|i| walk(rest, i)),
    }
}

/// Where a name ends: at a dot or bracket that isn't escaped.
fn end_of_name(text: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '\\' => escaped = !escaped,
            '.' | '[' if !escaped => return at,
            _ => escaped = false,
        }
    }
    text.len()
}

/// Where the bracket closes, brackets within quotes not counted.
fn end_of_brackets(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

// === impl Step ===

impl Step {
    fn in_brackets(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::All);
        }
        if let Some(filter) = text.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
            return Filter::parse(filter.trim()).map(Self::Filter);
        }
        if let Some(name) = unquoted(text) {
            return Some(Self::Field(name.to_owned()));
        }
        text.parse().ok().map(Self::Index)
    }
}

fn unquoted(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

// === impl Filter ===

impl Filter {
    fn parse(text: &str) -> Option<Self> {
        const OPERATORS: [(&str, Operator); 6] = [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        let found = OPERATORS.iter().find_map(|(sign, operator)| text.split_once(sign).map(|parts| (parts, *operator)));
        let (path, test) = match found {
            Some(((path, literal), operator)) => {
                let literal = literal.trim();
                let literal = match unquoted(literal) {
                    Some(text) => Value::String(text.to_owned()),
                    None => serde_json::from_str(literal).ok()?,
                };
                (path.trim(), Some((operator, literal)))
            }
            None => (text, None),
        };
        let path = path.strip_prefix('@')?;
        let path = path.split('.').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Some(Self { path, test })
    }

    fn holds(&self, item: &Value) -> bool {
        let value = self.path.iter().try_fold(item, |value, name| value.get(name));
        match (&self.test, value) {
            (None, value) => value.is_some(),
            (Some(_), None) => false,
            (Some((Operator::Equal, literal)), Some(value)) => value == literal,
            (Some((Operator::NotEqual, literal)), Some(value)) => value != literal,
            (Some((operator, literal)), Some(value)) => {
                let Some(order) = value.as_f64().zip(literal.as_f64()).and_then(|(a, b)| a.partial_cmp(&b)) else {
                    return false;
                };
                match operator {
                    Operator::Less => order.is_lt(),
                    Operator::LessOrEqual => order.is_le(),
                    Operator::Greater => order.is_gt(),
                    _ => order.is_ge(),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_form_of_step_finds_its_value() {
        let object = json!({
            "metadata": {"labels": {"app.example/name": "web"}},
            "spec": {"list": [{"n": 1}, {"n": 2}, {"n": 3}]},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "at": 5}, {"type": "Other[0]", "status": "False", "at": 9}]},
        });
        let cases = [
            (".spec.list[1].n", json!(2)),
            ("{.spec.list[-1].n}", json!(3)),
            ("spec.list[*].n", json!(1)),
            (".spec.list.*.n", json!(1)),
            (".metadata.labels['app.example/name']", json!("web")),
            (".metadata.labels.app\\.example/name", json!("web")),
            (".status.conditions[?(@.type==\"Ready\")].status", json!("True")),
            (".status.conditions[?(@.type == 'Other[0]')].status", json!("False")),
            (".status.conditions[?(@.type!=\"Ready\")].status", json!("False")),
            (".status.conditions[?(@.at>6)].status", json!("False")),
        ];
        for (path, expected) in cases {
            let parsed = JsonPath::parse(path).unwrap_or_else(|| panic!("{path} isn't understood"));
            assert_eq!(parsed.first(&object), Some(&expected), "{path}");
        }
    }

    #[test]
    fn a_missing_value_or_a_broken_path_finds_nothing() {
        let object = json!({"a": [1], "b": null});
        for path in [".a[1]", ".a.b", ".c", ".a[?(@.x==1)]"] {
            assert_eq!(JsonPath::parse(path).unwrap().first(&object), None, "{path}");
        }
        for path in [".a[", ".a[x]", "..a", ".a[?(x)]"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
        assert_eq!(JsonPath::parse(".b").unwrap().first(&object), Some(&Value::Null));
    }
}
