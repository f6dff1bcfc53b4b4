//! Paths, as they're written at a field: `status.conditions[type=Ready].status`.

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Each,
    At(usize),
    Where(String, String),
}

/// The steps of a path, or what's wrong with it.
pub(crate) fn parse(path: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = path;
    if rest.is_empty() {
        return Err("the path is empty; write something like `spec.nodeName`".to_owned());
    }
    if let Some(after) = rest.strip_prefix('.') {
        return Err(format!("a path begins with a key: write `{after}`"));
    }
    while !rest.is_empty() {
        let (step, after) = match rest.strip_prefix('[') {
            Some(inner) => bracket(path, inner)?,
            None => key(path, &steps, rest)?,
        };
        steps.push(step);
        rest = match after.strip_prefix('.') {
            Some("") => return Err(format!("`{path}` ends with a dot")),
            Some(more) if more.starts_with('[') => {
                return Err(format!("`{path}`: there's no dot before a bracket"));
            }
            Some(more) => more,
            None if after.is_empty() || after.starts_with('[') => after,
            None => return Err(format!("`{path}`: a dot or a bracket is missing before `{after}`")),
        };
    }
    match steps.first() {
        Some(Step::Key(_)) => Ok(steps),
        _ => Err(format!("`{path}`: an object isn't a list; a path begins with a key")),
    }
}

fn is_plain(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '-' | '_')
}

fn key<'a>(path: &str, steps: &[Step], rest: &'a str) -> Result<(Step, &'a str), String> {
    let end = rest.find(|char| !is_plain(char)).unwrap_or(rest.len());
    let (key, after) = rest.split_at(end);
    match after.chars().next() {
        None | Some('.' | '[') if !key.is_empty() => Ok((Step::Key(key.to_owned()), after)),
        None | Some('.' | '[') => Err(format!("`{path}`: a key is missing between two dots")),
        Some(other) => {
            let whole = rest.split('[').next().unwrap_or(rest);
            let before = crate::check::render(steps);
            Err(format!("`{path}`: a key with {other:?} in it is written in quotes: `{before}[{whole:?}]`"))
        }
    }
}

/// What's in a bracket that was opened before `inner`.
fn bracket<'a>(path: &str, inner: &'a str) -> Result<(Step, &'a str), String> {
    let unclosed = || format!("`{path}`: a bracket isn't closed");
    if inner.starts_with('"') {
        let (key, after) = quoted(inner).ok_or_else(|| format!("`{path}`: a quote isn't closed"))?;
        return Ok((Step::Key(key), after.strip_prefix(']').ok_or_else(unclosed)?));
    }
    if let Some((name, value)) = inner.split_once('=')
        && !name.is_empty()
        && name.chars().all(is_plain)
    {
        let (value, after) = if value.starts_with('"') {
            let (value, after) = quoted(value).ok_or_else(|| format!("`{path}`: a quote isn't closed"))?;
            (value, after.strip_prefix(']').ok_or_else(unclosed)?)
        } else {
            let (value, after) = value.split_once(']').ok_or_else(unclosed)?;
            (value.to_owned(), after)
        };
        return Ok((Step::Where(name.to_owned(), value), after));
    }
    let (what, after) = inner.split_once(']').ok_or_else(unclosed)?;
    match what {
        "*" => Ok((Step::Each, after)),
        _ => match what.parse() {
            Ok(position) => Ok((Step::At(position), after)),
            Err(_) => Err(format!(
                "`{path}`: `[{what}]` is none of `[*]` (each element), `[type=Ready]` (the first that has this value), `[0]` (the \
                 one at this position) and `[\"a.b/c\"]` (a key of a map)"
            )),
        },
    }
}

/// The text that begins with a quote, and what comes after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((position, char)) = chars.next() {
        match char {
            '"' => return Some((value, text.get(position + 1..)?)),
            '\\' => value.push(chars.next()?.1),
            char => value.push(char),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Step {
        Step::Key(text.to_owned())
    }

    #[test]
    fn every_form_of_a_path_is_read() {
        assert_eq!(parse("spec.nodeName"), Ok(vec![key("spec"), key("nodeName")]));
        assert_eq!(
            parse("metadata.annotations[\"example.com/x\\\"y\"]"),
            Ok(vec![key("metadata"), key("annotations"), key("example.com/x\"y")])
        );
        assert_eq!(
            parse("a[*].b[12][k=v=w].c[k=\"]\"]"),
            Ok(vec![
                key("a"),
                Step::Each,
                key("b"),
                Step::At(12),
                Step::Where("k".to_owned(), "v=w".to_owned()),
                key("c"),
                Step::Where("k".to_owned(), "]".to_owned())
            ])
        );
    }

    #[test]
    fn what_is_no_path_is_an_error_that_says_how_to_write_it() {
        for (path, shown) in [
            ("", "is empty"),
            (".spec", "write `spec`"),
            ("spec.", "ends with a dot"),
            ("a..b", "a key is missing"),
            ("a.[*]", "no dot before a bracket"),
            ("a[*]b", "is missing before `b`"),
            ("[*].a", "begins with a key"),
            ("a[b]", "is none of"),
            ("a[*", "isn't closed"),
            ("a[\"b]", "a quote isn't closed"),
            ("a[\"b\".c", "isn't closed"),
            ("metadata.labels.a/b", "`metadata.labels[\"a/b\"]`"),
        ] {
            let error = parse(path).expect_err(path);
            assert!(error.contains(shown), "{path}: {error}");
        }
    }
}
