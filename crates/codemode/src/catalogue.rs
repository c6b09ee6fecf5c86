//! What a program may call: as a value, as text for a model, and as what a program can ask about itself.

use serde_json::{Map, Value, json};
use tool_host::nearest;

/// The plugin name under which a program asks for the catalogue itself.
pub(crate) const SELF: &str = "$";
/// Answers of a search when nothing else is said.
const SEARCH_LIMIT: usize = 10;
/// Bytes of what can be searched for, and of a name that is asked about.
const LONGEST_QUERY: usize = 1_000;
/// Bytes of text that make about one token.
const BYTES_PER_TOKEN: usize = 4;
/// What the text of a catalogue may take, in tokens, when nothing else is said.
pub const DEFAULT_BUDGET: usize = 6_000;

/// All tools there are, by plugin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    plugins: Vec<Plugin>,
}

/// The tools of one plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct Plugin {
    /// Its name.
    pub name: String,
    /// Its tools.
    pub tools: Vec<Tool>,
}

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its own name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The JSON Schema of its input.
    pub input_schema: Value,
    /// The JSON Schema of what a call resolves to; `None` for text.
    pub output_schema: Option<Value>,
}

/// A catalogue as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueText {
    /// The text.
    pub text: String,
    /// Whether every tool is described in it. Every tool is named in any case.
    pub complete: bool,
}

impl Catalogue {
    /// A catalogue of these plugins, ordered by name. Plugins without tools are left out; of two with one name the tools
    /// are put together.
    pub fn new(plugins: impl IntoIterator<Item = Plugin>) -> Self {
        let mut all: Vec<Plugin> = Vec::new();
        for plugin in plugins.into_iter().filter(|plugin| !plugin.tools.is_empty()) {
            match all.iter_mut().find(|known| known.name == plugin.name) {
                Some(known) => known.tools.extend(plugin.tools),
                None => all.push(plugin),
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Self { plugins: all }
    }

    /// The plugins, ordered by name.
    pub fn plugins(&self) -> &[Plugin] {
        &self.plugins
    }

    fn all(&self) -> impl Iterator<Item = (&Plugin, &Tool)> {
        self.plugins.iter().flat_map(|plugin| plugin.tools.iter().map(move |tool| (plugin, tool)))
    }

    /// The tool that a program means: by its own names, or by names with `_` for what no identifier has.
    ///
    /// # Errors
    /// That there is none, with the names that are near.
    pub fn find(&self, plugin: &str, tool: &str) -> Result<(&Plugin, &Tool), String> {
        let found =
            meant(&self.plugins, plugin, |plugin| &plugin.name).map_err(|same| match same.is_empty() {
                true => self.no_plugin(plugin),
                false => two_meanings("tools", plugin, &same),
            })?;
        match meant(&found.tools, tool, |tool| &tool.name) {
            Ok(tool) => Ok((found, tool)),
            Err(same) if same.is_empty() => Err(no_tool(found, tool)),
            Err(same) => Err(two_meanings(&format!("tools{}", member(&found.name)), tool, &same)),
        }
    }

    fn no_plugin(&self, plugin: &str) -> String {
        // A tool that was called without its plugin.
        if let Some((owner, tool)) =
            self.all().find(|(_, tool)| tool.name == plugin || alias(&tool.name) == plugin)
        {
            return format!("no plugin {plugin}; the tool of that name is {}", call(owner, tool));
        }
        let names = self.plugins.iter().map(|plugin| plugin.name.as_str());
        let meant =
            nearest(plugin, names.clone()).map_or(";".to_owned(), |near| format!("; did you mean {near}?"));
        match self.plugins.is_empty() {
            true => format!("no plugin {plugin}: there are no tools at all"),
            false => format!("no plugin {plugin}{meant} there are: {}", names.collect::<Vec<_>>().join(", ")),
        }
    }

    /// The catalogue as text for a model: every tool with its description, its input schema and what it returns, as far
    /// as about `budget` tokens allow; beyond that names.
    pub fn text(&self, budget: usize) -> CatalogueText {
        let full: Vec<String> = self.all().map(|(plugin, tool)| entry(plugin, tool)).collect();
        let room = budget.saturating_mul(BYTES_PER_TOKEN);
        let count = full.len();
        if full.iter().map(|entry| entry.len() + 2).sum::<usize>() <= room {
            let text = format!("COMPLETE: all {count} tools a program can call.\n\n{}", full.join("\n\n"));
            return CatalogueText { text: text.trim_end().to_owned(), complete: true };
        }
        let names: Vec<String> =
            self.plugins.iter().map(|plugin| format!("{}: {}", plugin.name, list(plugin))).collect();
        let names = names.join("\n");
        let mut left = room.saturating_sub(names.len());
        let mut described = Vec::new();
        for entry in &full {
            // In order, so that the text of a growing catalogue stays the same as far as possible.
            let Some(rest) = left.checked_sub(entry.len() + 2) else { break };
            left = rest;
            described.push(entry.as_str());
        }
        let text = format!(
            "PARTIAL: {} of {count} tools are described here; all are named. In a program, await tools.$search({{query, \
             limit}}) finds tools and await tools.$describe(\"plugin.tool\") answers schema and description of one.\n\n\
             {names}\n\n{}",
            described.len(),
            described.join("\n\n"),
        );
        CatalogueText { text: text.trim_end().to_owned(), complete: false }
    }

    /// What a program asks about the catalogue: `$list`, `$search` or `$describe`.
    ///
    /// # Errors
    /// What the program gets instead.
    pub(crate) fn about(&self, question: &str, input: &Map<String, Value>) -> Result<Value, String> {
        match question {
            "$list" => Ok(self.all().map(|(plugin, tool)| summary(plugin, tool)).collect()),
            "$search" => self.search(input),
            "$describe" => self.describe(input),
            _ => Err(format!("there is no tools.{question}; there are $list, $search and $describe")),
        }
    }

    fn search(&self, input: &Map<String, Value>) -> Result<Value, String> {
        let Some(query) = input.get("query").and_then(Value::as_str) else {
            return Err("tools.$search takes {query, limit}: query is missing".to_owned());
        };
        let limit = match input.get("limit") {
            None | Some(Value::Null) => SEARCH_LIMIT,
            Some(limit) => limit
                .as_u64()
                .and_then(|limit| usize::try_from(limit).ok())
                .ok_or("tools.$search takes {query, limit}: limit is a count")?,
        };
        // It is looked for in every tool, while nothing else of the host runs.
        if query.len() > LONGEST_QUERY {
            return Err(format!(
                "tools.$search: query has {} bytes; write at most {LONGEST_QUERY}",
                query.len()
            ));
        }
        let query = query.to_lowercase();
        let words: Vec<&str> =
            query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let mut found: Vec<_> = self
            .all()
            .map(|(plugin, tool)| (score(&words, plugin, tool), plugin, tool))
            .filter(|(score, ..)| *score > 0)
            .collect();
        // Stable: equals stay in the catalogue's order.
        found.sort_by_key(|(score, ..)| std::cmp::Reverse(*score));
        Ok(found.into_iter().take(limit).map(|(_, plugin, tool)| summary(plugin, tool)).collect())
    }

    fn describe(&self, input: &Map<String, Value>) -> Result<Value, String> {
        let Some(name) = input.get("name").and_then(Value::as_str) else {
            return Err(
                "tools.$describe takes the name of a tool, as in tools.$describe(\"plugin.tool\")".to_owned()
            );
        };
        if name.len() > LONGEST_QUERY {
            return Err(format!("tools.$describe: no tool has a name of {} bytes", name.len()));
        }
        // A tool's own name may have a dot.
        let (plugin, tool) =
            name.split_once('.').ok_or_else(|| format!("{name} is no tool: write plugin.tool"))?;
        let (plugin, tool) = self.find(plugin, tool)?;
        let mut about = json!({
            "name": format!("{}.{}", plugin.name, tool.name),
            "call": call(plugin, tool),
            "description": tool.description,
            "input_schema": tool.input_schema,
        });
        about["returns"] = tool.output_schema.clone().unwrap_or_else(|| "text".into());
        Ok(about)
    }
}

/// The one thing of that name, or else of that alias; otherwise those that share it.
fn meant<'a, T>(all: &'a [T], name: &str, name_of: impl Fn(&T) -> &String) -> Result<&'a T, Vec<&'a T>> {
    if let Some(found) = all.iter().find(|one| name_of(one) == name) {
        return Ok(found);
    }
    let same: Vec<&T> = all.iter().filter(|one| alias(name_of(one)) == name).collect();
    match same.as_slice() {
        [only] => Ok(only),
        _ => Err(same),
    }
}

/// A name with `_` for every character that no identifier has.
pub fn alias(name: &str) -> String {
    let part_of_identifier = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    // JavaScript counts UTF-16 units, and so does the alias.
    let unit = |c: char| std::iter::repeat_n(if part_of_identifier(c) { c } else { '_' }, c.len_utf16());
    name.chars().flat_map(unit).collect()
}

fn no_tool(plugin: &Plugin, tool: &str) -> String {
    let names = plugin.tools.iter().map(|tool| tool.name.as_str());
    let name = &plugin.name;
    let meant = nearest(tool, names).map_or(";".to_owned(), |near| format!("; did you mean {name}.{near}?"));
    format!("no tool {name}.{tool}{meant} {name} has: {}", list(plugin))
}

fn two_meanings<T: Named>(of: &str, alias: &str, same: &[&T]) -> String {
    let names: Vec<&str> = same.iter().map(|one| one.name()).collect();
    let ways: Vec<String> = names.iter().map(|name| format!("{of}[{}]", Value::from(*name))).collect();
    format!("{alias} stands for {} alike; write {}", names.join(" and "), ways.join(" or "))
}

trait Named {
    fn name(&self) -> &str;
}

impl Named for Plugin {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for Tool {
    fn name(&self) -> &str {
        &self.name
    }
}

fn list(plugin: &Plugin) -> String {
    plugin.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// How a program writes the member of that name.
fn member(name: &str) -> String {
    let alias = alias(name);
    match alias.starts_with(|first: char| first.is_ascii_digit()) || alias.is_empty() {
        true => format!("[{}]", Value::from(name)),
        false => format!(".{alias}"),
    }
}

/// How a program calls the tool. A name that shares its alias is written in brackets.
fn call(plugin: &Plugin, tool: &Tool) -> String {
    let other = alias(&tool.name);
    let shared =
        other != tool.name && plugin.tools.iter().filter(|one| alias(&one.name) == other).count() > 1;
    let name = if shared { format!("[{}]", Value::from(tool.name.as_str())) } else { member(&tool.name) };
    format!("tools{}{name}", member(&plugin.name))
}

fn entry(plugin: &Plugin, tool: &Tool) -> String {
    let returns = tool.output_schema.as_ref().map_or_else(|| "text".to_owned(), Value::to_string);
    format!(
        "{}(input)\n{}\ninput: {}\nreturns: {returns}",
        call(plugin, tool),
        tool.description.trim(),
        tool.input_schema
    )
}

fn summary(plugin: &Plugin, tool: &Tool) -> Value {
    let line = tool.description.lines().next().unwrap_or_default().trim();
    let sentence = line.split_once(". ").map_or(line, |(first, _)| first).trim_end_matches('.');
    json!({ "name": format!("{}.{}", plugin.name, tool.name), "call": call(plugin, tool), "summary": sentence })
}

/// How well a tool fits the words: a name counts more than a description, and every word has to be somewhere.
fn score(words: &[&str], plugin: &Plugin, tool: &Tool) -> usize {
    let (name, text) =
        (format!("{} {}", plugin.name, tool.name).to_lowercase(), tool.description.to_lowercase());
    let one = |word: &&str| usize::from(name.contains(*word)) * 3 + usize::from(text.contains(*word));
    let scores: Vec<usize> = words.iter().map(one).collect();
    if scores.contains(&0) { 0 } else { scores.iter().sum() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> Tool {
        Tool {
            name: name.into(),
            description: description.into(),
            input_schema: json!({"type": "object", "properties": {}}),
            output_schema: None,
        }
    }

    fn catalogue() -> Catalogue {
        let fx = vec![
            tool("echo", "Answers what it is given. Nothing else."),
            tool("a-b", "Dash."),
            tool("a.b", "Dot."),
            tool("my-tool.v2", "Another."),
            tool("9lives", "Cats."),
        ];
        Catalogue::new([
            Plugin { name: "weather".into(), tools: vec![tool("forecast", "The weather of a city.")] },
            Plugin { name: "fx".into(), tools: fx },
        ])
    }

    #[track_caller]
    fn check(plugin: &str, name: &str, expected: Result<&str, &str>) {
        let catalogue = catalogue();
        let found =
            catalogue.find(plugin, name).map(|(plugin, tool)| format!("{}.{}", plugin.name, tool.name));
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn tools_are_found_by_name_and_by_alias() {
        check("fx", "echo", Ok("fx.echo"));
        check("fx", "my_tool_v2", Ok("fx.my-tool.v2"));
        check("fx", "a-b", Ok("fx.a-b"));
        check(
            "fx",
            "a_b",
            Err(r#"a_b stands for a-b and a.b alike; write tools.fx["a-b"] or tools.fx["a.b"]"#),
        );
        check(
            "weather",
            "forecst",
            Err("no tool weather.forecst; did you mean weather.forecast? weather has: forecast"),
        );
        check("echo", "", Err("no plugin echo; the tool of that name is tools.fx.echo"));
        check("wether", "forecast", Err("no plugin wether; did you mean weather? there are: fx, weather"));
    }

    #[test]
    fn calls_are_written_so_that_they_work() {
        let catalogue = catalogue();
        let calls: Vec<String> = catalogue.all().map(|(plugin, tool)| call(plugin, tool)).collect();
        let expected = [
            "tools.fx.echo",
            r#"tools.fx["a-b"]"#,
            r#"tools.fx["a.b"]"#,
            "tools.fx.my_tool_v2",
            r#"tools.fx["9lives"]"#,
            "tools.weather.forecast",
        ];
        assert_eq!(calls, expected);
    }

    #[test]
    fn a_text_says_whether_it_is_complete_and_names_every_tool() {
        let complete = catalogue().text(DEFAULT_BUDGET);
        assert!(complete.complete && complete.text.starts_with("COMPLETE: all 6 tools"), "{}", complete.text);
        assert!(
            complete.text.contains("tools.fx.echo(input)\nAnswers what it is given. Nothing else.\ninput: {")
        );
        let partial = catalogue().text(50);
        assert!(!partial.complete && partial.text.starts_with("PARTIAL: 1 of 6"), "{}", partial.text);
        assert!(partial.text.contains("fx: echo, a-b, a.b, my-tool.v2, 9lives\nweather: forecast"));
        assert_eq!(partial, catalogue().text(50));
    }

    #[test]
    fn a_program_can_ask() {
        let about = |question, input: Value| catalogue().about(question, input.as_object().unwrap());
        assert_eq!(about("$list", json!({})).unwrap().as_array().unwrap().len(), 6);
        let found = about("$search", json!({"query": "city weather"})).unwrap();
        assert_eq!(found[0]["name"], "weather.forecast");
        assert_eq!(about("$search", json!({"query": "a", "limit": 1})).unwrap().as_array().unwrap().len(), 1);
        assert!(about("$search", json!({})).unwrap_err().contains("query is missing"));
        let described = about("$describe", json!({"name": "fx.my-tool.v2"})).unwrap();
        assert_eq!(
            (&described["call"], &described["returns"]),
            (&json!("tools.fx.my_tool_v2"), &json!("text"))
        );
        assert!(about("$describe", json!({"name": "fx.ech"})).unwrap_err().contains("did you mean fx.echo?"));
    }
}
