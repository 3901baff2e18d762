//! Makes and opens cursors with the ATD runtime. The program reads one JSON object per
//! line from standard input, and answers each with one JSON object on a line.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use atd_runtime::cursor::{CursorError, CursorIssuer, CursorPayload, args_fingerprint};
use serde_json::{Value, json};

const TTL: u64 = 300;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("bench") {
        return bench();
    }
    let mut issuers: HashMap<String, CursorIssuer> = HashMap::new();
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let reply = match serde_json::from_str(&line.unwrap()) {
            Ok(asked) => answer(&mut issuers, &asked),
            Err(error) => json!({"Error": error.to_string()}),
        };
        writeln!(out, "{reply}").unwrap();
        out.flush().unwrap();
    }
}

/// Measures how long it takes to verify a cursor and to issue the next one. The first line of
/// the input describes the cursor. Every further line is a number: bench does the work this
/// many times, and answers with the nanoseconds that it took in all.
fn bench() {
    let mut lines = std::io::stdin().lock().lines().map(Result::unwrap);
    let given: Value = serde_json::from_str(&lines.next().unwrap()).unwrap();
    let text = |name: &str| given[name].as_str().unwrap().to_string();
    let issuer = CursorIssuer::new(unhex(&text("key")).try_into().unwrap());
    let fingerprint = args_fingerprint(&json!({}));
    let (tool, caller) = (text("tool"), Some(text("caller")));
    let issue = |page_index, opaque_state| {
        let issued_at_unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        issuer
            .issue(CursorPayload {
                tool_id: tool.clone(),
                caller_id: caller.clone(),
                args_fingerprint: fingerprint,
                page_index,
                issued_at_unix,
                server_session: issuer.session_nonce(),
                opaque_state,
            })
            .unwrap()
    };
    let token = issue(1, unhex(&text("state")));
    for line in lines {
        let count: u32 = line.parse().unwrap();
        let start = std::time::Instant::now();
        for _ in 0..count {
            let p = issuer.verify(&token, TTL).unwrap();
            assert!(p.tool_id == tool && p.caller_id == caller && p.args_fingerprint == fingerprint);
            std::hint::black_box(issue(p.page_index + 1, p.opaque_state));
        }
        println!("{}", start.elapsed().as_nanos());
    }
}

fn answer(issuers: &mut HashMap<String, CursorIssuer>, asked: &Value) -> Value {
    let text = |name: &str| asked[name].as_str().unwrap_or_default().to_string();
    let key = text("key");
    let issuer = issuers
        .entry(key.clone())
        .or_insert_with(|| CursorIssuer::new(unhex(&key).try_into().unwrap()));
    if text("op") == "session" {
        return json!({"Session": hex(&issuer.session_nonce())});
    }
    let arguments: Value = match serde_json::from_str(&text("arguments")) {
        Ok(arguments) => arguments,
        Err(_) => return json!({"Rejected": "arguments"}),
    };
    let caller = asked["caller"].as_str().map(str::to_string);
    let fingerprint = args_fingerprint(&arguments);
    if text("op") == "mint" {
        let issued = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        return match issuer.issue(CursorPayload {
            tool_id: text("tool"),
            caller_id: caller,
            args_fingerprint: fingerprint,
            page_index: asked["page"].as_u64().unwrap() as u32,
            issued_at_unix: issued,
            server_session: issuer.session_nonce(),
            opaque_state: unhex(&text("state")),
        }) {
            Ok(token) => json!({"Token": token}),
            Err(error) => json!({"Rejected": name(&error)}),
        };
    }
    match issuer.verify(&text("token"), TTL) {
        Err(error) => json!({"Rejected": name(&error)}),
        Ok(p) if p.tool_id != text("tool") || p.caller_id != caller || p.args_fingerprint != fingerprint => {
            json!({"Rejected": "mismatch"})
        }
        Ok(p) => json!({"State": format!("{} {}", p.page_index, hex(&p.opaque_state))}),
    }
}

fn name(error: &CursorError) -> &'static str {
    match error {
        CursorError::Expired => "Expired",
        CursorError::InvalidSignature => "InvalidSignature",
        CursorError::Format(_) => "Format",
        CursorError::TooLarge(_) => "TooLarge",
        CursorError::OpaqueStateTooLarge(_) => "OpaqueStateTooLarge",
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}
