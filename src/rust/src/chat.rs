//! Answers of chat endpoints as R lists.

use crate::convert::{text_of, to_text, to_value};
use crate::fault::guard;
use crate::run_setup::unusable;
use extendr_api::prelude::*;
use warrant_core::canon;
use warrant_core::chat::{read_anthropic, read_openai, Call, Reply};
use warrant_core::provider::parameters;

// The answer of an endpoint that speaks "openai" or "anthropic".
#[extendr]
fn rs_chat_reply(body: Robj, form: Robj) -> Robj {
    guard(|| {
        let body = text_of(&body, "body")?;
        let reply = match text_of(&form, "form")?.as_str() {
            "anthropic" => read_anthropic(&body)?,
            _ => read_openai(&body)?,
        };
        Ok(reply_list(&reply))
    })
}

// A tool's schema as JSON text for an endpoint.
#[extendr]
fn rs_chat_schema(schema: Robj) -> Robj {
    guard(|| {
        let schema = parameters(&to_value(&schema)?);
        Ok(to_text(&canon::to_string(&schema)))
    })
}

// Texts one after the other, as bytes: the body of a request, of which R would make
// a string and look it up among all others.
#[extendr]
fn rs_chat_join(texts: Robj) -> Robj {
    guard(|| {
        let texts = Strings::try_from(&texts).map_err(|e| unusable("a request", e))?;
        let mut bytes = Vec::new();
        for text in texts.iter() {
            let text: &str = text.as_ref();
            bytes.extend_from_slice(text.as_bytes());
        }
        Ok(Raw::from_bytes(&bytes))
    })
}

fn reply_list(reply: &Reply) -> Robj {
    let usage = reply.usage;
    list!(
        text = optional(reply.text.as_deref()),
        calls = List::from_values(reply.calls.iter().map(call_list)),
        model = optional(reply.model.as_deref()),
        finish = optional(reply.finish.as_deref()),
        thinking = optional(reply.thinking.as_deref()),
        usage = list!(
            prompt_tokens = usage.input,
            completion_tokens = usage.output,
            total_tokens = usage.total,
            cost = usage.cost
        )
    )
    .into()
}

fn call_list(call: &Call) -> Robj {
    list!(
        id = to_text(&call.id),
        name = to_text(&call.name),
        // Not JSON with it, and not without: a NUL must not make arguments valid.
        arguments = call.arguments.replace('\0', "\u{1}"),
        extra = optional(call.extra.as_deref())
    )
    .into()
}

fn optional(text: Option<&str>) -> Robj {
    text.map_or_else(|| ().into(), to_text)
}

extendr_module! {
    mod chat;
    fn rs_chat_join;
    fn rs_chat_reply;
    fn rs_chat_schema;
}
