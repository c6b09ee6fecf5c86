//! Plugin folders: manifests, permissions, rules and settings.
//!
//! A plugin is a folder with a [`Manifest`]. [`Plugin::open`] reads it; everything else in the folder is then read through
//! an open handle on the folder, so that nothing outside it is ever read on the plugin's word. [`rules`] reads the texts
//! that a plugin adds to an agent's instructions, and puts those of several plugins together.
//!
//! ```
//! use plugins::Manifest;
//!
//! let text = r#"{"name": "house-style", "version": "0.1.0", "contributes": {"rules": ["rules.md"]}}"#;
//! let manifest = Manifest::parse(text.as_bytes()).unwrap();
//! assert_eq!(manifest.name.as_str(), "house-style");
//! assert!(manifest.main.is_none());
//! ```

mod file;
mod folder;
mod manifest;
mod name;
mod path;
mod permission;
mod problem;
pub mod rules;
mod settings;

pub use file::{FileChange, WriteError, change_file};
pub use folder::{FileError, MANIFEST_NAMES, Plugin, PluginError};
pub use manifest::{Contributions, Main, Manifest, ManifestError};
pub use name::PluginName;
pub use path::{InnerPath, InnerPathError};
pub use permission::{HostName, NetPermission, Permission, Permissions, Reason};
pub use problem::Problem;
pub use settings::{Mode, PluginSettings, Settings, SettingsError, SettingsFile};
