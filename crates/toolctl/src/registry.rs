//! The plugins there are: the providers of the catalog, and the folders that the user has enabled.

use std::path::Path;

use plugins::rules::{self, Rules};
use plugins::{Plugin, Settings, SettingsError, SettingsFile};

use crate::embedded;
use crate::exit::Failure;

/// The rules of the catalog's providers.
const CATALOG_RULES: &[(&str, &str)] = &[
    ("filesystem", include_str!("../rules/filesystem.md")),
    ("search", include_str!("../rules/search.md")),
    ("exec", include_str!("../rules/exec.md")),
    ("web", include_str!("../rules/web.md")),
    ("user", include_str!("../rules/user.md")),
    ("task", include_str!("../rules/task.md")),
    ("agent", include_str!("../rules/agent.md")),
];

/// Every plugin that is known, with what the user has chosen about it.
pub(crate) struct Registry {
    pub(crate) settings: Settings,
    /// Ordered by name.
    pub(crate) plugins: Vec<Known>,
}

/// A plugin that is known.
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) origin: Origin,
    /// Whether agents get its tools and rules.
    pub(crate) enabled: bool,
    /// Whether agents get its rules.
    pub(crate) with_rules: bool,
    /// What it asks for by now, and was not granted: its tools are not there until it is enabled anew.
    pub(crate) not_granted: Vec<String>,
    pub(crate) rules: Rules,
}

/// Where a plugin comes from.
pub(crate) enum Origin {
    /// A provider of the catalog.
    Catalog,
    /// A folder.
    Folder(Box<Plugin>),
    /// A folder that is no plugin any more.
    Broken {
        /// The folder.
        folder: std::path::PathBuf,
        /// Why not.
        reason: String,
    },
}

/// Where the user's settings are.
///
/// # Errors
/// A usage error when neither `XDG_CONFIG_HOME` nor `HOME` says.
pub(crate) fn settings_file() -> Result<SettingsFile, Failure> {
    let variable = |name| std::env::var_os(name).map(std::path::PathBuf::from);
    SettingsFile::of_user(variable("XDG_CONFIG_HOME"), variable("HOME"))
        .ok_or_else(|| Failure::wrong_usage("neither XDG_CONFIG_HOME nor HOME is an absolute path"))
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::wrong_usage(error.to_string())
    }
}

impl Registry {
    /// What is known now. Whoever has no home has chosen nothing.
    ///
    /// # Errors
    /// The settings cannot be read.
    pub(crate) fn load() -> Result<Self, Failure> {
        Ok(Self::of(settings_file().map_or_else(|_| Ok(Settings::default()), |file| file.load())?))
    }

    /// What is known under these settings.
    pub(crate) fn of(settings: Settings) -> Self {
        let catalog = embedded::names().map(|name| Known::of_catalog(name, &settings));
        let folders = settings.plugins.iter().filter_map(|(name, about)| {
            let folder = about.folder.as_deref()?;
            Some(Known::of_folder(name, folder, &settings))
        });
        let mut plugins: Vec<Known> = catalog.chain(folders).collect();
        plugins.sort_by(|one, other| one.name.cmp(&other.name));
        Self { settings, plugins }
    }

    /// The plugin of that name.
    pub(crate) fn find(&self, name: &str) -> Option<&Known> {
        self.plugins.iter().find(|known| known.name == name)
    }

    /// The providers of the catalog that are enabled.
    pub(crate) fn catalog(&self) -> impl Iterator<Item = &'static str> {
        embedded::names().filter(move |name| self.find(name).is_some_and(|known| known.enabled))
    }

    /// The enabled folders whose tools may be provided.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &Plugin> {
        self.plugins.iter().filter(|known| known.enabled && known.not_granted.is_empty()).filter_map(
            |known| match &known.origin {
                Origin::Folder(plugin) if plugin.manifest.permissions.tools_provide.is_some() => {
                    Some(plugin.as_ref())
                }
                _ => None,
            },
        )
    }

    /// What whoever uses the plugins should know about them: one sentence each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.plugins.iter().filter(|known| known.enabled).flat_map(Known::warnings).collect()
    }
}

impl Known {
    fn of_catalog(name: &str, settings: &Settings) -> Self {
        let about = settings.plugin(name);
        let text = CATALOG_RULES.iter().find(|(of, _)| *of == name).map(|(_, text)| rules::tidy(text));
        let file = |text| rules::RuleFile { path: "rules.md".to_owned(), text };
        Self {
            name: name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            origin: Origin::Catalog,
            enabled: about.enabled,
            with_rules: about.rules,
            not_granted: Vec::new(),
            rules: Rules { files: text.into_iter().map(file).collect(), warnings: Vec::new() },
        }
    }

    fn of_folder(name: &str, folder: &Path, settings: &Settings) -> Self {
        let about = settings.plugin(name);
        match Plugin::open(folder) {
            Ok(plugin) if plugin.manifest.name.as_str() == name => Self {
                not_granted: about.not_granted(&plugin.manifest.permissions),
                enabled: about.enabled,
                with_rules: about.rules,
                ..Self::of_plugin(plugin)
            },
            Ok(plugin) => {
                let reason = format!("{} is now called {}", folder.display(), plugin.manifest.name);
                Self::broken(name, folder, reason, about.enabled)
            }
            Err(error) => Self::broken(name, folder, error.to_string(), about.enabled),
        }
    }

    /// A plugin that nothing has been chosen about.
    pub(crate) fn of_plugin(plugin: Plugin) -> Self {
        Self {
            name: plugin.manifest.name.to_string(),
            version: plugin.manifest.version.to_string(),
            enabled: true,
            with_rules: true,
            not_granted: Vec::new(),
            rules: rules::read(&plugin),
            origin: Origin::Folder(Box::new(plugin)),
        }
    }

    fn broken(name: &str, folder: &Path, reason: String, enabled: bool) -> Self {
        Self {
            name: name.to_owned(),
            version: String::new(),
            origin: Origin::Broken { folder: folder.to_owned(), reason },
            enabled,
            with_rules: false,
            not_granted: Vec::new(),
            rules: Rules::default(),
        }
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.rules.warnings.clone();
        if let Origin::Broken { reason, .. } = &self.origin {
            warnings.push(format!("the plugin {} cannot be used: {reason}", self.name));
        }
        if !self.not_granted.is_empty() {
            warnings.push(format!(
                "the plugin {} asks for more than it was granted ({}), so its tools are not there: toolctl plugins \
                 enable {} shows what it asks for",
                self.name,
                self.not_granted.join(", "),
                self.name
            ));
        }
        warnings
    }

    /// The texts of its rules, as far as agents get them.
    pub(crate) fn texts(&self) -> Vec<&str> {
        match self.enabled && self.with_rules {
            true => self.rules.files.iter().map(|file| file.text.as_str()).collect(),
            false => Vec::new(),
        }
    }
}
