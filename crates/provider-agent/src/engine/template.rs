//! The command line of a runner, with places for what a call says.

use serde_json::Value;

/// A command with places for values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    program: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// One argument.
    Argument(String),
    /// Arguments that are there only where all their values are.
    Group(Vec<String>),
}

/// What a call says.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// What the agent is asked.
    pub prompt: &'a str,
    /// The model.
    pub model: Option<&'a str>,
    /// How much it thinks.
    pub effort: Option<&'a str>,
}

/// A command that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program, and its arguments.
    pub argv: Vec<String>,
    /// Whether the prompt is in the arguments; otherwise it belongs on standard input.
    pub has_prompt: bool,
}

impl Values<'_> {
    fn get(&self, name: &str) -> Option<Option<&str>> {
        match name {
            "prompt" => Some(Some(self.prompt)),
            "model" => Some(self.model),
            "effort" => Some(self.effort),
            _ => None,
        }
    }
}

impl Template {
    /// Reads a template: a JSON list of texts, in which lists of texts are optional groups.
    ///
    /// # Errors
    /// What is wanted instead.
    pub fn parse(json: &str) -> Result<Self, String> {
        const WANTED: &str =
            "wanted a JSON list of the program and its arguments, such as [\"codex\",\"exec\",\"{prompt}\"]";
        let list: Vec<Value> = serde_json::from_str(json).map_err(|error| format!("{WANTED}: {error}"))?;
        let mut parts = list.into_iter().map(|part| match part {
            Value::String(argument) => Some(Part::Argument(argument)),
            Value::Array(group) => {
                let texts = group.into_iter().map(|argument| argument.as_str().map(str::to_owned));
                texts.collect::<Option<Vec<_>>>().map(Part::Group)
            }
            _ => None,
        });
        match parts.next() {
            Some(Some(Part::Argument(program))) if !program.is_empty() && !program.contains('{') => {
                let parts = parts
                    .collect::<Option<Vec<_>>>()
                    .ok_or_else(|| format!("{WANTED}; every argument is a text"))?;
                Ok(Self { program, parts })
            }
            _ => Err(format!("{WANTED}; the first is the program")),
        }
    }

    /// The program, as it was written.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Fills the values in. What a value contains is never looked at again.
    ///
    /// # Errors
    /// The name of a value that an argument needs and the call does not have.
    pub fn fill(&self, values: &Values<'_>) -> Result<Command, String> {
        let mut argv = vec![self.program.clone()];
        let mut has_prompt = false;
        for part in &self.parts {
            match part {
                Part::Argument(argument) => argv.push(filled(argument, values, &mut has_prompt)?),
                Part::Group(group) => {
                    let all = group.iter().map(|argument| filled(argument, values, &mut has_prompt));
                    if let Ok(arguments) = all.collect::<Result<Vec<_>, _>>() {
                        argv.extend(arguments);
                    }
                }
            }
        }
        Ok(Command { argv, has_prompt })
    }
}

fn filled(argument: &str, values: &Values<'_>, has_prompt: &mut bool) -> Result<String, String> {
    let mut text = String::with_capacity(argument.len());
    let mut rest = argument;
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        text.push_str(before);
        let name = from[1..].split_once('}').map(|(name, _)| name);
        match name.and_then(|name| Some((name, values.get(name)?))) {
            Some((name, Some(value))) => {
                *has_prompt |= name == "prompt";
                text.push_str(value);
                rest = &from[name.len() + 2..];
            }
            Some((name, None)) => return Err(name.to_owned()),
            None => {
                text.push('{');
                rest = &from[1..];
            }
        }
    }
    text.push_str(rest);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Values<'_> = Values { prompt: "do {model} it", model: Some("m"), effort: Some("high") };
    const ONLY_PROMPT: Values<'_> = Values { prompt: "p", model: None, effort: None };

    #[track_caller]
    fn check(template: &str, values: &Values<'_>, expected: Result<&[&str], &str>) {
        let got = Template::parse(template).unwrap().fill(values).map(|command| command.argv);
        let expected =
            expected.map(|argv| argv.iter().map(|&text| text.to_owned()).collect()).map_err(str::to_owned);
        assert_eq!(got, expected);
    }

    #[test]
    fn values_are_filled_in_once() {
        check(r#"["a","-m{model}","{effort}-{prompt}"]"#, &ALL, Ok(&["a", "-mm", "high-do {model} it"]));
        check(r#"["a","{\"x\":1}","{other}","{"]"#, &ALL, Ok(&["a", "{\"x\":1}", "{other}", "{"]));
    }

    #[test]
    fn a_group_without_its_values_is_left_out() {
        check(r#"["a",["--model","{model}"],"{prompt}"]"#, &ONLY_PROMPT, Ok(&["a", "p"]));
        check(r#"["a",["--model","{model}"],"{prompt}"]"#, &ALL, Ok(&["a", "--model", "m", "do {model} it"]));
        check(r#"["a","{model}"]"#, &ONLY_PROMPT, Err("model"));
    }

    #[test]
    fn a_command_without_a_place_for_the_prompt_reads_it() {
        let has_prompt = |template: &str| Template::parse(template).unwrap().fill(&ALL).unwrap().has_prompt;
        assert!(has_prompt(r#"["a","{prompt}"]"#));
        assert!(!has_prompt(r#"["a"]"#));
    }

    #[test]
    fn what_is_no_command_is_refused() {
        for wrong in [
            "",
            "codex",
            "{}",
            "[]",
            "[1]",
            "[\"\"]",
            "[\"{prompt}\"]",
            "[[\"a\"]]",
            "[\"a\",1]",
            "[\"a\",[1]]",
        ] {
            assert!(Template::parse(wrong).unwrap_err().contains("wanted a JSON list"), "{wrong}");
        }
    }
}
