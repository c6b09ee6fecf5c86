//! What the user has chosen, kept in one file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::file::{FileChange, WriteError, change_file};
use crate::name::PluginName;
use crate::permission::Permissions;

/// How agents see the tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// One tool, `execute`, whose programs call the others.
    #[default]
    Code,
    /// Each tool by itself.
    Separate,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Code => "code",
            Self::Separate => "separate",
        })
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "code" => Ok(Self::Code),
            "separate" => Ok(Self::Separate),
            other => Err(format!("{other:?} is no mode: wanted code or separate")),
        }
    }
}

/// What the user has chosen. What is not chosen is as it is by default: code mode, and every plugin that comes with the
/// program enabled, with its rules.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// How agents see the tools.
    #[serde(default)]
    pub mode: Mode,
    /// What was chosen about plugins, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plugins: BTreeMap<String, PluginSettings>,
    /// What a newer version keeps here; it stays.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What was chosen about a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginSettings {
    /// Its folder, absolute; `None` for one that comes with the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Whether agents get its tools and rules.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Whether agents get its rules.
    #[serde(default = "yes")]
    pub rules: bool,
    /// What was granted when it was enabled, as [`Permissions::grants`] has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<String>,
}

fn yes() -> bool {
    true
}

impl Default for PluginSettings {
    fn default() -> Self {
        Self { folder: None, enabled: true, rules: true, granted: Vec::new() }
    }
}

impl PluginSettings {
    /// What the plugin asks for by now, and was not granted.
    pub fn not_granted(&self, asked: &Permissions) -> Vec<String> {
        asked.grants().into_iter().filter(|grant| !self.granted.contains(grant)).collect()
    }
}

impl Settings {
    /// What was chosen about a plugin, or what holds by default.
    pub fn plugin(&self, name: &str) -> PluginSettings {
        self.plugins.get(name).cloned().unwrap_or_default()
    }

    /// What was chosen about a plugin, to change it.
    pub fn plugin_mut(&mut self, name: &str) -> &mut PluginSettings {
        self.plugins.entry(name.to_owned()).or_default()
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::default());
        }
        let settings: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let wrong = settings.plugins.keys().find(|name| name.parse::<PluginName>().is_err());
        match wrong {
            Some(name) => Err(format!("{name:?} is no name of a plugin")),
            None => Ok(settings),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        // A value made of texts and switches can always be written.
        let value = serde_json::to_value(self).unwrap_or_default();
        format!("{value:#}\n").into_bytes()
    }
}

/// Where the settings are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsFile(PathBuf);

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// They cannot be read.
    #[error("cannot read the settings {}: {reason}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// They are not what they should be.
    #[error("the settings {} are not understood: {reason}; correct the file, or remove it", .file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// They cannot be written.
    #[error("cannot write the settings: {0}")]
    Unwritable(#[from] WriteError),
}

impl SettingsFile {
    /// The settings in this file.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The user's: `pluggable-harness/settings.json` in `XDG_CONFIG_HOME`, else in `~/.config`. `None` where neither is an
    /// absolute path.
    pub fn of_user(config_home: Option<PathBuf>, home: Option<PathBuf>) -> Option<Self> {
        let config = config_home.filter(|path| path.is_absolute());
        let home = home.filter(|path| path.is_absolute()).map(|home| home.join(".config"));
        config.or(home).map(|folder| Self(folder.join("pluggable-harness/settings.json")))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What it says; the defaults where there is none.
    ///
    /// # Errors
    /// It cannot be read, or is not understood.
    pub fn load(&self) -> Result<Settings, SettingsError> {
        match std::fs::read(&self.0) {
            Ok(bytes) => self.parse(&bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Settings::default()),
            Err(error) => Err(SettingsError::Unreadable { file: self.0.clone(), reason: error.to_string() }),
        }
    }

    /// Changes what it says: in one step, and after whoever else is at it.
    ///
    /// # Errors
    /// It cannot be read, is not understood, or cannot be written.
    pub fn update(&self, change: impl FnOnce(&mut Settings)) -> Result<Settings, SettingsError> {
        let mut kept = Settings::default();
        change_file::<SettingsError>(&self.0, |bytes| {
            let mut settings = bytes.map_or_else(|| Ok(Settings::default()), |bytes| self.parse(bytes))?;
            change(&mut settings);
            let bytes = settings.to_bytes();
            kept = settings;
            Ok(FileChange::Write(bytes))
        })?;
        Ok(kept)
    }

    fn parse(&self, bytes: &[u8]) -> Result<Settings, SettingsError> {
        Settings::parse(bytes).map_err(|reason| SettingsError::Malformed { file: self.0.clone(), reason })
    }
}
