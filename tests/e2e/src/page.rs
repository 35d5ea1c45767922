//! The built page in a browser, which is what nearly every test starts from.

use std::ops::Deref;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::{Browser, Site};

/// A browser and the site that it looks at. The helpers of [`Browser`] are at hand.
#[derive(Debug)]
pub struct Page {
    browser: Browser,
    site: Site,
}

impl Page {
    /// Serves the built page and starts a browser for it.
    pub async fn start() -> Result<Self> {
        Self::with_switches(&[]).await
    }

    /// The same with more command line switches for the browser.
    pub async fn with_switches(switches: &[&str]) -> Result<Self> {
        let site = Site::start().await?;
        let browser = Browser::with_switches(switches).await?;
        Ok(Self { browser, site })
    }

    /// Starts a browser for a site.
    pub async fn at(site: Site) -> Result<Self> {
        Ok(Self { browser: Browser::start().await?, site })
    }

    /// Starts a browser for a site, with a profile that is kept in a folder.
    pub async fn with_profile(site: Site, folder: &Path) -> Result<Self> {
        Ok(Self { browser: Browser::with_profile(folder).await?, site })
    }

    /// Opens a page of the site, `""` for the start page, and waits until the app has put itself there.
    pub async fn open(&self, page: &str) -> Result<()> {
        self.open_from(&self.site.url(page)).await
    }

    /// Opens the page from any address, and waits until the app has put itself there.
    pub async fn open_from(&self, url: &str) -> Result<()> {
        self.goto(url).await?;
        let started = "return !!document.querySelector('body > :not(#boot, script, noscript)')";
        self.wait_until("the app to start", started, Vec::new()).await
    }

    /// The site that serves the page.
    #[must_use]
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// The requests that went anywhere but to the site.
    pub async fn foreign_requests(&self) -> Result<Vec<String>> {
        let mut requests = self.requests().await?;
        requests.retain(|url| !self.site.owns(url));
        Ok(requests)
    }

    /// Fails when the page reported an error or asked for something from elsewhere.
    pub async fn assert_clean(&self) -> Result<()> {
        let errors = self.console_errors().await?;
        ensure!(errors.is_empty(), "the page reported errors: {errors:#?}");
        let foreign = self.foreign_requests().await?;
        ensure!(foreign.is_empty(), "the page asked elsewhere: {foreign:#?}");
        Ok(())
    }

    /// Kills a browser that has a profile of its own. The site stays.
    pub async fn kill(self) -> Result<Site> {
        self.browser.kill().await?;
        Ok(self.site)
    }

    /// Ends the browser and waits for that.
    pub async fn quit(self) -> Result<()> {
        self.browser.quit().await
    }
}

impl Deref for Page {
    type Target = Browser;

    fn deref(&self) -> &Browser {
        &self.browser
    }
}
