//! The configured provider.

use http_guard::{Guard, Limits};
use provider_core::prelude::*;

use crate::cache::Store;
use crate::config::{Media, RobotsWanted, WebConfig, wrong};
use crate::rate::Rates;
use crate::readings::Readings;
use crate::robots::Robots;
use crate::searcher::Searcher;
use crate::tools::http_request::HttpRequest;
use crate::tools::web_fetch::WebFetch;
use crate::tools::web_search::WebSearch;

/// The web, as far as the configuration lets it be reached.
pub struct Web {
    /// The only way out.
    pub(crate) guard: Guard,
    /// What one fetch may take.
    pub(crate) limits: Limits,
    pub(crate) user_agent: String,
    pub(crate) media: Media,
    pub(crate) rates: Rates,
    /// `None` where robots.txt is not asked for.
    pub(crate) robots: Option<Robots>,
    /// `None` where nothing is kept.
    pub(crate) cache: Option<Arc<Store>>,
    pub(crate) readings: Readings,
    /// `None` where no search service is configured.
    pub(crate) searcher: Option<Searcher>,
}

impl Provider for Web {
    const NAME: &'static str = "web";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Config = WebConfig;

    async fn configure(config: WebConfig, setup: Setup) -> Result<Self, ToolError> {
        let robots = match config.robots {
            RobotsWanted::Respect => Some(Robots::new(&config.user_agent)),
            RobotsWanted::Ignore => None,
        };
        Ok(Self {
            guard: config.guard(&setup)?,
            limits: config.limits(),
            media: config.media,
            rates: Rates::default(),
            robots,
            cache: cache(&config, &setup)?,
            readings: Readings::default(),
            searcher: config.searcher(&setup)?,
            user_agent: config.user_agent,
        })
    }

    fn tools(tools: &mut Tools<Self>) {
        tools.data_source::<WebFetch>();
        tools.data_source::<WebSearch>();
        tools.resource::<HttpRequest>().with_preview();
    }
}

/// The cache. Without a place for it pages are fetched every time; only a place that was asked for must be usable.
fn cache(config: &WebConfig, setup: &Setup) -> Result<Option<Arc<Store>>, ToolError> {
    let state = setup.state_folder(config.state_dir.as_deref());
    let Some(state) = state.filter(|_| config.cache_bytes > 0) else { return Ok(None) };
    match Store::open(state.join("web"), config.cache_bytes) {
        Ok(store) => Ok(Some(Arc::new(store))),
        Err(error) if config.state_dir.is_some() => Err(wrong(
            "state_dir",
            format!("pages cannot be kept there: {error}. Set it to a folder that can be written"),
        )),
        Err(error) => {
            tracing::warn!(%error, "pages are not kept");
            Ok(None)
        }
    }
}
