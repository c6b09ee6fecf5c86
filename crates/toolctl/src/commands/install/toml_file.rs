//! TOML files of others, changed where they are to be changed and nowhere else.

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

/// A document that can be changed in place.
pub(super) struct TomlFile(DocumentMut);

impl TomlFile {
    /// Reads a document.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: toml_edit::TomlError| format!("it is not TOML: {error}"))
    }

    /// The document as text; `None` where nothing is left in it.
    pub(super) fn finish(self) -> Option<String> {
        let text = self.0.to_string();
        (!text.trim().is_empty()).then_some(text)
    }

    /// Sets values of a table inside of a table. What else the table has stays.
    ///
    /// # Errors
    /// One of them is there and no table.
    pub(super) fn set(&mut self, outer: &str, inner: &str, values: &[(&str, Value)]) -> Result<(), String> {
        let mut fresh = Table::new();
        // Only `[outer.inner]` is written, as people do.
        fresh.set_implicit(true);
        let holder = self.0.entry(outer).or_insert(Item::Table(fresh));
        let holder = holder.as_table_like_mut().ok_or_else(|| format!("{outer} is no table"))?;
        if !holder.contains_key(inner) {
            holder.insert(inner, Item::Table(Table::new()));
        }
        let table = holder.get_mut(inner).and_then(Item::as_table_like_mut);
        let table = table.ok_or_else(|| format!("{outer}.{inner} is no table"))?;
        for (name, value) in values {
            put(table, name, value.clone());
        }
        Ok(())
    }

    /// Takes a table out of a table, and that too if it has nothing else.
    pub(super) fn remove(&mut self, outer: &str, inner: &str) {
        let Some(holder) = self.0.get_mut(outer).and_then(Item::as_table_like_mut) else { return };
        if holder.remove(inner).is_some() && holder.is_empty() {
            self.0.remove(outer);
        }
    }

    /// The text at the top of the document of that name.
    ///
    /// # Errors
    /// It is there and no text.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, String> {
        match self.0.get(name) {
            None => Ok(None),
            Some(item) => item.as_str().map(Some).ok_or_else(|| format!("{name} is no text")),
        }
    }

    /// Gives the text at the top of the document, or takes it away.
    pub(super) fn set_text(&mut self, name: &str, text: Option<&str>) {
        match text {
            Some(text) => put(self.0.as_table_mut(), name, Value::from(text)),
            None => {
                self.0.remove(name);
            }
        }
    }
}

/// Sets a value unless it is there already; what stands around the old one stays.
fn put(table: &mut dyn TableLike, name: &str, mut value: Value) {
    match table.get_mut(name).and_then(Item::as_value_mut) {
        Some(known) if same(known, &value) => {}
        Some(known) => {
            *value.decor_mut() = known.decor().clone();
            *known = value;
        }
        None => {
            table.insert(name, Item::Value(value));
        }
    }
}

fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => one.value() == other.value(),
        (Value::Integer(one), Value::Integer(other)) => one.value() == other.value(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other.iter()).all(|(one, other)| same(one, other))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put_in(text: &str) -> String {
        let mut file = TomlFile::parse(text).unwrap();
        let arguments: toml_edit::Array = ["mcp"].into_iter().collect();
        let values = [
            ("command", Value::from("/bin/toolctl")),
            ("args", Value::Array(arguments)),
            ("tool_timeout_sec", Value::from(960)),
        ];
        file.set("mcp_servers", "toolctl", &values).unwrap();
        let told = file.text("developer_instructions").unwrap().unwrap_or_default().replace("OURS\n", "");
        file.set_text("developer_instructions", Some(&format!("{told}OURS\n")));
        file.finish().unwrap()
    }

    fn take_out(text: &str) -> Option<String> {
        let mut file = TomlFile::parse(text).unwrap();
        file.remove("mcp_servers", "toolctl");
        let rest = file.text("developer_instructions").unwrap().unwrap_or_default().replace("OURS\n", "");
        file.set_text("developer_instructions", (!rest.is_empty()).then_some(rest.as_str()));
        file.finish()
    }

    /// Put in twice it is the same, and taken out again it is what it was, byte for byte.
    #[track_caller]
    fn check(text: &str) {
        let with = put_in(text);
        assert_eq!(put_in(&with), with, "twice");
        let read: DocumentMut = with.parse().unwrap();
        assert_eq!(read["mcp_servers"]["toolctl"]["command"].as_str(), Some("/bin/toolctl"), "{with}");
        assert_eq!(read["mcp_servers"]["toolctl"]["args"][0].as_str(), Some("mcp"), "{with}");
        assert!(read["developer_instructions"].as_str().unwrap().ends_with("OURS\n"), "{with}");
        assert_eq!(take_out(&with).unwrap_or_default(), text, "taken out of {with}");
    }

    #[test]
    fn foreign_keys_and_comments_stay_byte_for_byte() {
        check("");
        check("# mine\nmodel = \"o3\"   # why\n\n[tools]\nweb = true\n\n# the end\n");
        check("[mcp_servers.other]\ncommand = 'x'\nargs = [ 'a',\n  'b' ]\n");
        check("a.b = 1\n\n[[list]]\nx = 1\n\n[mcp_servers.other.env]\nA = \"1\"\n");
        check("mcp_servers = { other = { command = \"x\" } }\n");
    }

    #[test]
    fn what_the_user_has_set_in_our_table_stays() {
        let text = "[mcp_servers.toolctl]\nenabled = false # for now\ncommand = \"old\"  # here\n";
        let with = put_in(text);
        assert!(with.contains("enabled = false # for now\ncommand = \"/bin/toolctl\"  # here\n"), "{with}");
    }

    #[test]
    fn what_is_not_as_it_should_be_is_left_alone() {
        assert!(TomlFile::parse("a = ").is_err());
        let mut file = TomlFile::parse("mcp_servers = 3\ndeveloper_instructions = 4\n").unwrap();
        assert_eq!(file.set("mcp_servers", "toolctl", &[]), Err("mcp_servers is no table".to_owned()));
        assert_eq!(file.text("developer_instructions"), Err("developer_instructions is no text".to_owned()));
    }
}
