//! Label selectors: `app=web,tier in (front, back),!legacy,generation>3`.
//!
//! Negative requirements (`!=`, `notin`) also match objects without the label; `>` and `<` match integers only.

use serde_json::Value;

use crate::object;
use crate::status::Status;

/// The longest name part of a label key, and the longest label value.
const LONGEST_NAME: usize = 63;
/// The longest prefix of a label key.
const LONGEST_PREFIX: usize = 253;
/// What may follow a key.
const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

/// A parsed label selector: all requirements hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operator {
    Exists,
    DoesNotExist,
    In(Vec<String>),
    NotIn(Vec<String>),
    GreaterThan(i64),
    LessThan(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Equal,
    NotEqual,
    Not,
    Open,
    Close,
    Comma,
    Greater,
    Less,
    End,
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
}

// === impl LabelSelector ===

impl LabelSelector {
    /// Parses the text form; an empty text selects everything. 400 when it isn't understood.
    pub(crate) fn parse(text: &str) -> Result<Self, Status> {
        let mut parser = Parser { tokens: tokens(text), next: 0 };
        parser.selector().map_err(Status::bad_request)
    }

    /// Whether the object's labels meet every requirement.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(object::label(object, &requirement.key)))
    }

    /// A label, as key and value, that every object has that it selects; `None` when it requires no single value.
    pub(crate) fn required_label(&self) -> Option<(&str, &str)> {
        self.requirements.iter().find_map(|requirement| match &requirement.operator {
            Operator::In(values) => match values.as_slice() {
                [value] => Some((requirement.key.as_str(), value.as_str())),
                _ => None,
            },
            Operator::Exists
            | Operator::DoesNotExist
            | Operator::NotIn(_)
            | Operator::GreaterThan(_)
            | Operator::LessThan(_) => None,
        })
    }

    /// Whether it has no requirement.
    pub(crate) fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }
}

// === impl Requirement ===

impl Requirement {
    fn matches(&self, label: Option<&str>) -> bool {
        match &self.operator {
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::In(values) => label.is_some_and(|label| values.iter().any(|value| value == label)),
            Operator::NotIn(values) => label.is_none_or(|label| values.iter().all(|value| value != label)),
            Operator::GreaterThan(bound) => integer(label).is_some_and(|label| label > *bound),
            Operator::LessThan(bound) => integer(label).is_some_and(|label| label < *bound),
        }
    }
}

// === impl Parser ===

impl<'a> Parser<'a> {
    fn selector(&mut self) -> Result<LabelSelector, String> {
        let mut requirements = Vec::new();
        if self.peek() == Token::End {
            return Ok(LabelSelector { requirements });
        }
        loop {
            let requirement = self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
            requirements.push(requirement);
            match self.take() {
                Token::End => return Ok(LabelSelector { requirements }),
                Token::Comma if matches!(self.peek(), Token::Word(_) | Token::Not) => {}
                Token::Comma => return Err(format!("{}, expected: identifier after ','", found(self.peek()))),
                other => return Err(format!("{}, expected: ',' or 'end of string'", found(other))),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.peek() == Token::Not;
        if negated {
            self.take();
        }
        let key = match self.take() {
            Token::Word(key) => key,
            other if negated => return Err(format!("{}, expected: identifier", found(other))),
            other => return Err(format!("{}, expected: !, identifier, or 'end of string'", found(other))),
        };
        check_key(key)?;
        let at_end = matches!(self.peek(), Token::End | Token::Comma);
        if negated || at_end {
            let operator = if negated { Operator::DoesNotExist } else { Operator::Exists };
            return Ok(Requirement { key: key.to_owned(), operator });
        }
        let operator = match self.take() {
            Token::Equal => Operator::In(vec![self.single_value(key)?]),
            Token::NotEqual => Operator::NotIn(vec![self.single_value(key)?]),
            Token::Word("in") => Operator::In(self.value_list(key)?),
            Token::Word("notin") => Operator::NotIn(self.value_list(key)?),
            Token::Greater => Operator::GreaterThan(self.bound(key)?),
            Token::Less => Operator::LessThan(self.bound(key)?),
            other => return Err(format!("{}, expected: {OPERATORS}", found(other))),
        };
        Ok(Requirement { key: key.to_owned(), operator })
    }

    /// A value after `=` and the like; none at all is the empty value.
    fn single_value(&mut self, key: &str) -> Result<String, String> {
        match self.peek() {
            Token::End | Token::Comma => Ok(String::new()),
            Token::Word(value) => {
                self.take();
                check_value(key, value)?;
                Ok(value.to_owned())
            }
            other => Err(format!("{}, expected: identifier", found(other))),
        }
    }

    fn bound(&mut self, key: &str) -> Result<i64, String> {
        let text = self.single_value(key)?;
        text.parse().map_err(|_| {
            format!("values[0]: Invalid value: \"{text}\": for 'Gt', 'Lt' operators, the value must be an integer")
        })
    }

    /// `(a, b, )`: a missing word between commas is the empty value; `()` is refused.
    fn value_list(&mut self, key: &str) -> Result<Vec<String>, String> {
        match self.take() {
            Token::Open => {}
            other => return Err(format!("{}, expected: '('", found(other))),
        }
        if self.peek() == Token::Close {
            return Err("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty".to_owned());
        }
        let mut values = Vec::new();
        loop {
            values.push(match self.peek() {
                Token::Word(value) => {
                    self.take();
                    check_value(key, value)?;
                    value.to_owned()
                }
                _ => String::new(),
            });
            match self.take() {
                Token::Comma => {}
                Token::Close => return Ok(values),
                other => return Err(format!("{}, expected: ',', or identifier", found(other))),
            }
        }
    }

    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.next).copied().unwrap_or(Token::End)
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            ',' => (Token::Comma, 1),
            '>' => (Token::Greater, 1),
            '<' => (Token::Less, 1),
            '=' if rest.starts_with("==") => (Token::Equal, 2),
            '=' => (Token::Equal, 1),
            '!' if rest.starts_with("!=") => (Token::NotEqual, 2),
            '!' => (Token::Not, 1),
            _ => {
                let length = rest.find(ends_word).unwrap_or(rest.len());
                (Token::Word(rest.get(..length).unwrap_or(rest)), length)
            }
        };
        tokens.push(token);
        rest = rest.get(length..).unwrap_or("").trim_start();
    }
    tokens
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn found(token: Token<'_>) -> String {
    let text = match token {
        Token::Word(word) => word,
        Token::Equal => "=",
        Token::NotEqual => "!=",
        Token::Not => "!",
        Token::Open => "(",
        Token::Close => ")",
        Token::Comma => ",",
        Token::Greater => ">",
        Token::Less => "<",
        Token::End => "",
    };
    format!("found '{text}'")
}

fn integer(label: Option<&str>) -> Option<i64> {
    label.and_then(|label| label.parse().ok())
}

/// A label key is `name` or `prefix/name`, the prefix being a DNS subdomain.
fn check_key(key: &str) -> Result<(), String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let prefix_fits = prefix.is_none_or(|prefix| prefix.len() <= LONGEST_PREFIX && is_subdomain(prefix));
    if prefix_fits && !name.is_empty() && is_label_text(name) {
        return Ok(());
    }
    Err(format!(
        "<nil>: Invalid value: \"{key}\": a label key is an optional DNS subdomain and '/', then at most {LONGEST_NAME} \
         letters, digits, '-', '_' or '.', with a letter or digit at both ends"
    ))
}

fn check_value(key: &str, value: &str) -> Result<(), String> {
    if is_label_text(value) {
        return Ok(());
    }
    Err(format!(
        "values[0][{key}]: Invalid value: \"{value}\": a valid label must be an empty string or at most {LONGEST_NAME} \
         letters, digits, '-', '_' or '.', with a letter or digit at both ends"
    ))
}

/// Whether the text may be a label's value or the name part of its key; empty is fine.
pub(crate) fn is_label_text(text: &str) -> bool {
    let ends_fit = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    text.len() <= LONGEST_NAME
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && ends_fit(text.chars().next())
        && ends_fit(text.chars().last())
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(|part| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selects(selector: &str, labels: Value) -> bool {
        LabelSelector::parse(selector).unwrap().matches(&json!({"metadata": {"labels": labels}}))
    }

    #[test]
    fn positive_requirements_need_the_label() {
        for selector in ["a=x", "a==x", " a = x ", "a in (x,y)", "a in ( y , x )", "a", "a=x,b", "a in (x), b in (y)"] {
            assert!(selects(selector, json!({"a": "x", "b": "y"})), "{selector}");
            assert!(!selects(selector, json!({"c": "x"})), "{selector}");
        }
        assert!(!selects("a=x", json!({"a": "y"})));
        assert!(!selects("a=x,b=z", json!({"a": "x", "b": "y"})));
    }

    #[test]
    fn negative_requirements_also_match_an_absent_label() {
        for selector in ["a!=x", "a notin (x,z)", "!a"] {
            assert!(selects(selector, json!({"b": "x"})), "{selector}");
            assert!(!selects(selector, json!({"a": "x"})), "{selector}");
        }
        assert!(selects("a!=x", json!({"a": "y"})));
        assert!(LabelSelector::parse("!a").unwrap().matches(&json!({"metadata": {}})));
    }

    #[test]
    fn comparisons_are_of_integers_only() {
        assert!(selects("n>3", json!({"n": "4"})));
        assert!(!selects("n>3", json!({"n": "3"})));
        assert!(selects("n < 3", json!({"n": "-1"})));
        for labels in [json!({"n": "many"}), json!({})] {
            assert!(!selects("n>3", labels.clone()));
            assert!(!selects("n<3", labels));
        }
    }

    #[test]
    fn empty_values_can_be_asked_for() {
        for selector in ["a=", "a=,b", "a in (,x)", "a in (x,)"] {
            assert!(selects(selector, json!({"a": "", "b": ""})), "{selector}");
        }
        assert!(!selects("a!=", json!({"a": ""})));
    }

    #[test]
    fn words_of_the_grammar_are_also_keys_and_values() {
        assert!(selects("in in (notin)", json!({"in": "notin"})));
        assert!(selects("notin=in", json!({"notin": "in"})));
    }

    #[test]
    fn nothing_selects_everything() {
        for selector in ["", "  "] {
            let selector = LabelSelector::parse(selector).unwrap();
            assert!(selector.is_everything());
            assert!(selector.matches(&json!({})));
        }
        assert!(!LabelSelector::parse("a").unwrap().is_everything());
    }

    #[test]
    fn bad_syntax_is_a_400_that_shows_the_piece() {
        for (selector, piece) in [
            ("a=b=c", "found '='"),
            ("a b", "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a,", "expected: identifier after ','"),
            (",a", "found ','"),
            ("a in x", "expected: '('"),
            ("a in (x", "found ''"),
            ("a in ()", "can't be empty"),
            ("a in (x y)", "found 'y'"),
            ("!", "expected: identifier"),
            ("!a=b", "found '='"),
            ("a>b", "must be an integer"),
            ("a//b=c", "\"a//b\""),
            ("A.B/c=d", "\"A.B/c\""),
            ("a=-b", "\"-b\""),
            ("a=\u{fc}", "\"\u{fc}\""),
        ] {
            let error = LabelSelector::parse(selector).unwrap_err();
            assert_eq!(error.code, 400, "{selector}");
            assert!(error.message.contains(piece), "{selector}: {}", error.message);
        }
        let long = "x".repeat(LONGEST_NAME + 1);
        assert_eq!(LabelSelector::parse(&format!("a={long}")).unwrap_err().code, 400);
        assert_eq!(LabelSelector::parse(&long).unwrap_err().code, 400);
    }
}
