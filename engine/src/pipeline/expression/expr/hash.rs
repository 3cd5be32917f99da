//! Hashes of texts.

use md5::Md5;
use sha2::{Digest, Sha256};

use super::operator::ArgumentForm::Named as ByName;
use super::operator::{ExprOperator, NamedArguments, OperatorCall, name_table};
use super::{Answer, Env, NULL, some};
use crate::model::excerpt::excerpt;
use crate::model::value::Value;
use crate::pipeline::value::error::err;

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns the hash of the string as hexadecimal digits in upper case.
    "$hexHash"("input: string, algorithm: string") [
        r#"{"$hexHash":{"input":"$a","algorithm":"md5"}}"#,
        r#"{"a":"hello"}"#,
        r#""5D41402ABC4B2A76B9719D911017C592""#,
    ]
        .remark("The algorithm is `sha256` or `md5`; `md5` is not secure. MongoDB's `xxh64` is not supported."):
        ByName(&HEX_HASH), hex_hash;
};

static HEX_HASH: NamedArguments =
    NamedArguments { not_object: 40414, unknown: 40415, fields: &[("input", Some(40414)), ("algorithm", Some(40414))] };

fn hex_hash(call: &OperatorCall, env: &Env) -> Answer {
    let (input, algorithm) = (call.value(0, env)?, call.value(1, env)?);
    let hash: fn(&[u8]) -> String = match &algorithm {
        Value::String(name) if **name == *"sha256" => |bytes| hex::encode_upper(Sha256::digest(bytes)),
        Value::String(name) if **name == *"md5" => |bytes| hex::encode_upper(Md5::digest(bytes)),
        other => return err!(2, "'algorithm' of $hexHash must be 'sha256' or 'md5', found: {}", excerpt(other)),
    };
    match input {
        Value::Null => NULL,
        Value::String(text) => {
            // Evaluating the argument has counted the reading of the text. Hashing the text takes longer.
            env.query.tick_bytes(text.len().saturating_mul(8))?;
            let text = hash(text.as_bytes());
            env.query.charge(text.len())?;
            some(text)
        }
        other => err!(14, "'input' of $hexHash must be a string, found: {}", other.type_name()),
    }
}
