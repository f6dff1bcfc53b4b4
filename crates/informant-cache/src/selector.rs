//! Label selectors, as the API writes them: `app=web,tier in (a,b),!canary`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A label selector: the requirements that an object's labels must all meet.
///
/// The empty selector ([`Selector::everything`]) selects every object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Equals(String),
    /// Also met by an object without the label, as on the server.
    NotEquals(String),
    In(Vec<String>),
    /// Also met by an object without the label, as on the server.
    NotIn(Vec<String>),
    Exists,
    Absent,
}

/// A text that isn't a label selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "label selector {text:?} can't be read at {at:?}: write requirements like app=web, tier!=db, env in (a,b), env notin (a,b), key or !key, joined by commas"
)]
pub struct ParseSelectorError {
    text: String,
    at: String,
}

// === impl Selector ===

impl Selector {
    /// The selector of every object.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// Whether every object is selected.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Adds the requirement that a label has this value.
    #[must_use]
    pub fn with_label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.requirements.push(Requirement { key: key.into(), test: Test::Equals(value.into()) });
        self
    }

    /// Whether labels meet all requirements, given a look-up of one label's value.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.test.is_met(label(&requirement.key)))
    }
}

impl From<&BTreeMap<String, String>> for Selector {
    /// The selector of objects that have all these labels (`matchLabels`).
    fn from(labels: &BTreeMap<String, String>) -> Self {
        labels.iter().fold(Self::everything(), |selector, (key, value)| selector.with_label(key, value))
    }
}

impl FromStr for Selector {
    type Err = ParseSelectorError;

    fn from_str(text: &str) -> Result<Self, ParseSelectorError> {
        let mut requirements = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = requirement_end(rest);
            let (part, after) = rest.split_at(end);
            let error = || ParseSelectorError { text: text.to_owned(), at: part.trim().to_owned() };
            requirements.push(Requirement::parse(part.trim()).ok_or_else(error)?);
            rest = match after.strip_prefix(',') {
                None => "",
                // A comma with nothing after it.
                Some(more) if more.trim().is_empty() => return Err(error()),
                Some(more) => more,
            };
        }
        Ok(Self { requirements })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, Requirement { key, test }) in self.requirements.iter().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            match test {
                Test::Equals(value) => write!(f, "{key}={value}")?,
                Test::NotEquals(value) => write!(f, "{key}!={value}")?,
                Test::In(values) => write!(f, "{key} in ({})", values.join(","))?,
                Test::NotIn(values) => write!(f, "{key} notin ({})", values.join(","))?,
                Test::Exists => f.write_str(key)?,
                Test::Absent => write!(f, "!{key}")?,
            }
        }
        Ok(())
    }
}

// === impl Test and Requirement ===

impl Test {
    fn is_met(&self, value: Option<&str>) -> bool {
        let among = |values: &[String]| value.is_some_and(|value| values.iter().any(|one| one == value));
        match self {
            Self::Equals(wanted) => value == Some(wanted),
            Self::NotEquals(unwanted) => value != Some(unwanted),
            Self::In(values) => among(values),
            Self::NotIn(values) => !among(values),
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
        }
    }
}

impl Requirement {
    fn parse(text: &str) -> Option<Self> {
        if let Some(key) = text.strip_prefix('!') {
            return Self::new(key, Test::Absent);
        }
        if let Some((key, value)) = text.split_once("!=") {
            return Self::new(key, Test::NotEquals(plain(value)?));
        }
        if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
            return Self::new(key, Test::Equals(plain(value)?));
        }
        if let Some((head, values)) = text.split_once('(') {
            let values = values.strip_suffix(')')?.split(',').map(plain).collect::<Option<Vec<_>>>()?;
            let (key, operator) = head.trim().split_once(char::is_whitespace)?;
            return match operator.trim() {
                "in" => Self::new(key, Test::In(values)),
                "notin" => Self::new(key, Test::NotIn(values)),
                _ => None,
            };
        }
        Self::new(text, Test::Exists)
    }

    fn new(key: &str, test: Test) -> Option<Self> {
        let key = plain(key)?;
        (!key.is_empty()).then_some(Self { key, test })
    }
}

/// The length of the first requirement: up to a comma that isn't between brackets.
fn requirement_end(text: &str) -> usize {
    let mut in_brackets = false;
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => in_brackets = true,
            b')' => in_brackets = false,
            b',' if !in_brackets => return position,
            _ => {}
        }
    }
    text.len()
}

/// A key or value without the spaces around it; `None` if it holds a character that neither may have.
fn plain(text: &str) -> Option<String> {
    let text = text.trim();
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
    text.bytes().all(allowed).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(selector: &str, labels: &[(&str, &'static str)]) -> bool {
        let selector: Selector = selector.parse().expect(selector);
        selector.matches(|key| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| *value))
    }

    #[test]
    fn each_operator_selects_as_on_the_server() {
        let web = [("app", "web"), ("tier", "a")];
        for selector in
            ["", "app=web", "app==web", "app = web , tier in (a, b)", "app", "!canary", "env!=prod", "env notin (x)"]
        {
            assert!(selects(selector, &web), "{selector}");
        }
        for selector in ["app=db", "app!=web", "tier in (b,c)", "tier notin (a)", "!app", "canary", "app=web,tier=b"] {
            assert!(!selects(selector, &web), "{selector}");
        }
    }

    #[test]
    fn a_selector_is_read_back_from_its_text() {
        for text in ["app=web", "app!=web,tier in (a,b),env notin (x),zone,!canary"] {
            assert_eq!(text.parse::<Selector>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn a_text_that_is_no_selector_is_an_error_that_shows_the_place() {
        for text in ["app=web,", "=x", "a in b", "a in (b", "a b", "app=w$b", "!"] {
            let error = text.parse::<Selector>().expect_err(text);
            assert!(error.to_string().contains("requirements like"), "{error}");
        }
    }
}
