//! A server on rmcp, the official Rust SDK, for the probe to attack: rmcp-peer [--port N] KIND
//!
//! Three kinds, as the comments of rmcp's modules and its example servers_mrtr show them:
//!
//!   plain  a state built by hand; the module `request_state` calls its codec optional.
//!   codec  RequestStateCodec in its default use (seal_json and open_json, as in the example):
//!          an HMAC, without an expiry and without a binding.
//!   bound  with associated data, as in the module's own example: the user and the tool. It
//!          does not name the arguments. There are no users here, so only the tool remains.
//!
//! rmcp's documented use: the codec, the extractors of the tool macros, and the service. The
//! handler's own: what the state contains, and that it is believed. rmcp has no middleware for
//! bearer tokens on the server's side, so there are no users. Its tool router does not page.

use std::{env, error::Error, sync::Arc};

use rmcp::{
    ServerHandler,
    handler::server::{
        router::tool::ToolRouter,
        tool::{InputResponses, RequestState, ToolName},
        wrapper::Parameters,
    },
    model::{
        CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams, ElicitResult,
        ElicitationAction, ErrorData, InputRequest, InputRequests, InputRequiredResult, ProtocolVersion,
        RequestStateCodec, SealOptions, ServerCapabilities, ServerConfig,
    },
    schemars, tool, tool_handler, tool_router,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Clone)]
enum Protection {
    Plain,
    Codec(RequestStateCodec),
    Bound(RequestStateCodec),
}

impl Protection {
    fn named(kind: &str) -> Result<Self, Box<dyn Error>> {
        let codec = RequestStateCodec::try_new(b"a key for these tests and nothing else")?;
        match kind {
            "plain" => Ok(Self::Plain),
            "codec" => Ok(Self::Codec(codec)),
            "bound" => Ok(Self::Bound(codec)),
            _ => Err(format!("the kind {kind:?} is unknown: write plain, codec or bound").into()),
        }
    }

    fn seal(&self, tool: &str, state: &State) -> Result<String, ErrorData> {
        match self {
            Self::Plain => serde_json::to_string(state).map_err(internal),
            Self::Codec(codec) => codec.seal_json(state).map_err(internal),
            Self::Bound(codec) => codec
                .seal_json_with(state, &SealOptions::new().associated_data(context(tool).as_bytes()))
                .map_err(internal),
        }
    }

    fn open(&self, tool: &str, sealed: &str) -> Result<State, ErrorData> {
        match self {
            Self::Plain => serde_json::from_str(sealed).map_err(refused),
            Self::Codec(codec) => codec.open_json(sealed).map_err(refused),
            Self::Bound(codec) => codec.open_json_with(sealed, context(tool).as_bytes()).map_err(refused),
        }
    }
}

fn context(tool: &str) -> String {
    format!("tools/call:{tool}")
}

fn internal(error: impl Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn refused(_: impl Error) -> ErrorData {
    ErrorData::invalid_params("the request state is not valid", None)
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Arguments {
    env: String,
    build: i64,
}

/// What the handler wants to remember until the answer comes.
#[derive(Serialize, Deserialize)]
struct State {
    step: String,
    env: String,
}

#[derive(Clone)]
struct Server {
    protection: Protection,
    tool_router: ToolRouter<Self>,
}

impl Server {
    fn ask(&self, tool: &str, arguments: &Arguments) -> Result<CallToolResponse, ErrorData> {
        let form = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
        let question = ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: format!("Really do this to {}, build {}?", arguments.env, arguments.build),
            requested_schema: serde_json::from_value(form).map_err(internal)?,
        });
        let state = State { step: "confirm".into(), env: arguments.env.clone() };
        let requests = InputRequests::from([("confirm".into(), InputRequest::Elicitation(question))]);
        Ok(InputRequiredResult::new(Some(requests), Some(self.protection.seal(tool, &state)?)).into())
    }

    /// What both tools do: ask, and act after the answer.
    fn confirmed(
        &self,
        done: &str,
        tool: &str,
        arguments: &Arguments,
        state: Option<String>,
        responses: Option<rmcp::model::InputResponses>,
    ) -> Result<CallToolResponse, ErrorData> {
        // As in rmcp's example, a call without a state is the first one.
        let Some(state) = state else {
            return self.ask(tool, arguments);
        };
        let state = self.protection.open(tool, &state)?;
        let Some(answer) = responses.as_ref().and_then(|responses| responses.get("confirm")) else {
            return self.ask(tool, arguments);
        };
        let answer = ElicitResult::deserialize(answer)
            .map_err(|_| ErrorData::invalid_params("the answer is not one to the question", None))?;
        let ok = answer.content.is_some_and(|content| content["ok"] == true);
        let said = if answer.action == ElicitationAction::Accept && ok {
            // The handler believes what came back.
            format!("{done} {} build {}", state.env, arguments.build)
        } else {
            "nothing was done".into()
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(said)]).into())
    }
}

#[tool_router]
impl Server {
    #[tool(description = "Deploys a build.")]
    async fn deploy(
        &self,
        ToolName(tool): ToolName,
        Parameters(arguments): Parameters<Arguments>,
        RequestState(state): RequestState,
        InputResponses(responses): InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        self.confirmed("deployed", &tool, &arguments, state, responses)
    }

    #[tool(description = "Rolls a build back.")]
    async fn rollback(
        &self,
        ToolName(tool): ToolName,
        Parameters(arguments): Parameters<Arguments>,
        RequestState(state): RequestState,
        InputResponses(responses): InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        self.confirmed("rolled back", &tool, &arguments, state, responses)
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.protocol_version = ProtocolVersion::V_2026_07_28;
        info
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let mut port = 0;
    if arguments.first().is_some_and(|first| first == "--port") && arguments.len() > 1 {
        port = arguments[1].parse()?;
        arguments.drain(..2);
    }
    let protection = Protection::named(arguments.first().map_or("", String::as_str))?;
    let server = Server { protection, tool_router: Server::tool_router() };
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default().with_legacy_session_mode(false),
    );
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("serving http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
