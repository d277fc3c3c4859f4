//! The client: makes calls and, with its transport, carries them out.

use std::fmt;

use agent_plugin::Options;
use digest_text::Sha256Text;
use plugin_archive::Limits;
use strict_json::{Json, Object, to_line};

use crate::address::{BaseUrl, LONGEST_URL, RequestPath};
use crate::answer;
use crate::auth::{Auth, Header, distinct};
use crate::call::{Call, go_on};
use crate::download::{self, Download};
use crate::error::{AddressError, ClientError, PathError, SelectionError};
use crate::selection::{CatalogPage, InstallationsPage, ReleasesPage, Selection};
use crate::transport::{Cancel, MAX_JSON_BYTES, Method, Request, Transport};

const JSON: &str = "application/json";
const ARTIFACT: &str = "application/x-tar+gzip, application/octet-stream";

/// Asks one Backplane.
pub struct Client<T> {
    pub(crate) base: BaseUrl,
    auth: Auth,
    headers: Vec<Header>,
    pub(crate) limits: Limits,
    options: Options,
    transport: T,
}

impl<T> Client<T> {
    /// Makes a client of a base URL, what authorizes it, extra headers and a transport.
    pub fn new(
        base_url: &str,
        auth: Auth,
        headers: Vec<Header>,
        transport: T,
    ) -> Result<Self, ClientError> {
        let base = base_url.parse()?;
        distinct(&headers)?;
        Ok(Self {
            base,
            auth,
            headers,
            limits: Limits::default(),
            options: Options::default(),
            transport,
        })
    }

    /// Sets how large artifacts and what is in them may be.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Sets how the packages of artifacts are loaded.
    #[must_use]
    pub fn with_options(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// Returns the base URL.
    pub fn base_url(&self) -> &BaseUrl {
        &self.base
    }

    /// Returns the transport.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// Makes the call for a page of the catalog.
    pub fn catalog_call(&self, page: &CatalogPage) -> Result<Call<Object>, ClientError> {
        self.query_call(&page.endpoint()?)
    }

    /// Makes the call for a release.
    pub fn resolve_call(&self, selection: &Selection) -> Result<Call<Object>, ClientError> {
        self.query_call(&selection.endpoint()?)
    }

    /// Makes the call for an artifact by its digest, `sha256:` and 64 lowercase hexadecimal digits.
    pub fn download_call(&self, digest: &str) -> Result<Call<Download>, ClientError> {
        let expected: Sha256Text = digest.parse()?;
        let url = self.base.endpoint(&format!("/artifacts/{expected}"));
        let url = url.ok_or(AddressError::TooLong { limit: LONGEST_URL })?;
        let headers = self.with_credentials(vec![Header::own("accept", ARTIFACT)])?;
        let answer_limit = self.longest_artifact();
        let request = Request {
            method: Method::Get,
            url,
            headers,
            body: None,
            answer_limit,
            refusal_limit: 0,
        };
        let (limits, options) = (self.limits, self.options.clone());
        Ok(Call::new(request, move |answer, cancel| {
            let artifact = answer::artifact(answer, expected, answer_limit)?;
            download::open(artifact, expected, &limits, &options, cancel)
        }))
    }

    /// Makes the call for a page of a plugin's releases, newest first.
    pub fn releases_call(
        &self,
        plugin_id: &str,
        page: &ReleasesPage,
    ) -> Result<Call<Object>, ClientError> {
        self.query_call(&page.endpoint(plugin_id)?)
    }

    /// Makes the call for a page of the installations that hosts have reported.
    pub fn installations_call(
        &self,
        page: &InstallationsPage,
    ) -> Result<Call<Object>, ClientError> {
        self.query_call(&page.endpoint()?)
    }

    /// Makes the call for a JSON request to a path under the prefix.
    pub fn request_call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Json>,
    ) -> Result<Call<Object>, ClientError> {
        let path: RequestPath = path.parse()?;
        let url = self.base.endpoint(path.as_str());
        let url = url.ok_or(PathError::TooLong { limit: LONGEST_URL })?;
        let body = body.map(to_line);
        if let Some(actual) = body.as_ref().map(Vec::len).filter(|n| *n > MAX_JSON_BYTES) {
            let limit = MAX_JSON_BYTES;
            return Err(ClientError::BodyTooLong { limit, actual });
        }
        self.json_call(method, url, body)
    }

    /// Returns how many bytes of an artifact are sent or read at most.
    pub(crate) fn longest_artifact(&self) -> usize {
        usize::try_from(self.limits.archive_bytes).unwrap_or(usize::MAX)
    }

    /// Adds what the caller supplies to headers of the client's own.
    pub(crate) fn with_credentials(
        &self,
        mut headers: Vec<Header>,
    ) -> Result<Vec<Header>, ClientError> {
        headers.extend(self.auth.headers(&self.headers)?);
        Ok(headers)
    }

    fn query_call(&self, endpoint: &str) -> Result<Call<Object>, ClientError> {
        let url = self.base.endpoint(endpoint);
        let url = url.ok_or(SelectionError::TooLong { limit: LONGEST_URL })?;
        self.json_call(Method::Get, url, None)
    }

    fn json_call(
        &self,
        method: Method,
        url: String,
        body: Option<Vec<u8>>,
    ) -> Result<Call<Object>, ClientError> {
        let mut headers = vec![Header::own("accept", JSON)];
        if body.is_some() {
            headers.push(Header::own("content-type", JSON));
        }
        let headers = self.with_credentials(headers)?;
        let request = Request {
            method,
            url,
            headers,
            body,
            answer_limit: MAX_JSON_BYTES,
            refusal_limit: 0,
        };
        Ok(Call::new(request, |answer, _| answer::object(answer)))
    }
}

impl<T: Transport> Client<T> {
    /// Gets the first page of the catalog as the object that the provider sent.
    pub fn catalog(&self, cancel: &dyn Cancel) -> Result<Object, ClientError> {
        self.catalog_page(&CatalogPage::default(), cancel)
    }

    /// Gets a page of the catalog as the object that the provider sent.
    pub fn catalog_page(
        &self,
        page: &CatalogPage,
        cancel: &dyn Cancel,
    ) -> Result<Object, ClientError> {
        self.carry_out(self.catalog_call(page)?, cancel)
    }

    /// Gets the release that a selection means, as the object that the provider sent.
    pub fn resolve(
        &self,
        selection: &Selection,
        cancel: &dyn Cancel,
    ) -> Result<Object, ClientError> {
        self.carry_out(self.resolve_call(selection)?, cancel)
    }

    /// Gets an artifact, checks its digest, and only then unpacks it and loads its package.
    pub fn download(&self, digest: &str, cancel: &dyn Cancel) -> Result<Download, ClientError> {
        self.carry_out(self.download_call(digest)?, cancel)
    }

    /// Makes a JSON request to a path under the prefix, as for lists and reports of installations.
    pub fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Json>,
        cancel: &dyn Cancel,
    ) -> Result<Object, ClientError> {
        self.carry_out(self.request_call(method, path, body)?, cancel)
    }

    /// Gets a page of a plugin's releases as the object that the provider sent.
    pub fn releases(
        &self,
        plugin_id: &str,
        page: &ReleasesPage,
        cancel: &dyn Cancel,
    ) -> Result<Object, ClientError> {
        self.carry_out(self.releases_call(plugin_id, page)?, cancel)
    }

    /// Gets a page of the installations as the object that the provider sent.
    pub fn installations(
        &self,
        page: &InstallationsPage,
        cancel: &dyn Cancel,
    ) -> Result<Object, ClientError> {
        self.carry_out(self.installations_call(page)?, cancel)
    }

    /// Sends the bytes of an artifact, to be released later.
    pub fn upload(&self, artifact: Vec<u8>, cancel: &dyn Cancel) -> Result<Object, ClientError> {
        self.carry_out(self.upload_call(artifact)?, cancel)
    }

    /// Gets the receipt beside an artifact; nothing of it is checked but its length.
    pub fn receipt(&self, digest: &str, cancel: &dyn Cancel) -> Result<Vec<u8>, ClientError> {
        self.carry_out(self.receipt_call(digest)?, cancel)
    }

    /// Puts a receipt beside an artifact.
    pub fn put_receipt(
        &self,
        digest: &str,
        receipt: Vec<u8>,
        cancel: &dyn Cancel,
    ) -> Result<Object, ClientError> {
        self.carry_out(self.put_receipt_call(digest, receipt)?, cancel)
    }

    /// Sends a call that was made here and waits for what it gives.
    pub fn carry_out<A>(&self, call: Call<A>, cancel: &dyn Cancel) -> Result<A, ClientError> {
        go_on(cancel)?;
        let answer = self.transport.send(call.request(), cancel);
        call.finish(answer, cancel)
    }
}

impl<T> fmt::Debug for Client<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base", &self.base.to_string())
            .field("auth", &self.auth)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}
