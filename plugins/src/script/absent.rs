//! Finds the names of absent values that make a script fail. The interpreter reports only the type of such a value,
//! `()`. Messages to the author of the plugin also contain the name.

use foldwork_engine::model::value::Object;
use rhai::{AST, ASTNode, EvalAltResult, Expr, Position, Stmt};

/// The text that stands for an expression without a name, such as an operator with its operands.
const UNNAMED: &str = "…";
const UNIT: &str = "()";

/// The data from which messages take names: the program of a hook, the name of the program's settings parameter, and
/// the settings that the manifest declares.
pub(super) struct ScriptNames<'a> {
    pub(super) ast: &'a AST,
    pub(super) settings_name: &'a str,
    pub(super) settings: &'a Object,
}

impl ScriptNames<'_> {
    /// Returns the message for an error that an absent value caused, and for a loop over a value of a type without
    /// items. Returns `None` for other errors.
    pub(super) fn message(&self, error: &EvalAltResult) -> Option<String> {
        match error {
            EvalAltResult::ErrorFunctionNotFound(signature, position) => self.of_call(signature, *position),
            EvalAltResult::ErrorDotExpr(message, position) if message.ends_with("type '()'") => {
                let property = message.split('\'').nth(1).unwrap_or(UNNAMED);
                let absent = self.found(*position, |path| match path.last() {
                    Some(ASTNode::Expr(Expr::Property(..))) => target(path),
                    _ => None,
                });
                Some(format!("cannot read the property '{property}' of (){}", self.because(absent)))
            }
            EvalAltResult::ErrorIndexingType(what, position) if what.starts_with(UNIT) => {
                let absent = self.found(*position, |path| match path.last() {
                    Some(ASTNode::Expr(Expr::Index(..))) => target(path),
                    _ => None,
                });
                Some(format!("cannot read an item of (){}", self.because(absent)))
            }
            EvalAltResult::ErrorMismatchDataType(expected, found, position) if found == UNIT => {
                Some(format!("expected {expected}, found (){}", self.because(self.at(*position))))
            }
            EvalAltResult::ErrorFor(position) => {
                let looped = self.at(*position)?;
                let reason = match self.undeclared(&looped) {
                    Some(setting) => format!("{} has no '{setting}'", self.settings_name),
                    None => "the value is missing or of a type without items".to_owned(),
                };
                Some(format!("cannot loop over '{looped}': {reason}"))
            }
            _ => None,
        }
    }

    /// Returns the message for a call that no function accepts because an argument is `()`. `signature` contains the
    /// name of the function and the types of the arguments.
    fn of_call(&self, signature: &str, position: Position) -> Option<String> {
        let (name, types) = signature.split_once(" (")?;
        let types: Vec<&str> = types.strip_suffix(')')?.split(", ").collect();
        let index = types.iter().position(|kind| *kind == UNIT)?;
        let absent = self.found(position, |path| match path.last() {
            Some(ASTNode::Expr(Expr::FnCall(call, _)) | ASTNode::Stmt(Stmt::FnCall(call, _))) if call.name == name => {
                call.args.get(index).map(text)
            }
            Some(ASTNode::Expr(Expr::MethodCall(call, _))) if call.name == name => match index.checked_sub(1) {
                Some(index) => call.args.get(index).map(text),
                None => target(path),
            },
            _ => None,
        });
        let is_operator = !name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let place = match (is_operator, types.len(), index) {
            (true, 2, 0) => "the left side".to_owned(),
            (true, 2, _) => "the right side".to_owned(),
            _ => format!("argument {}", index + 1),
        };
        Some(format!("'{name}': {place} is (){}", self.because(absent)))
    }

    fn because(&self, absent: Option<String>) -> String {
        match absent.filter(|absent| absent != UNNAMED) {
            Some(absent) => match self.undeclared(&absent) {
                Some(setting) => format!(": {} has no '{setting}'", self.settings_name),
                None => format!(": '{absent}' has no value"),
            },
            None => String::new(),
        }
    }

    /// If `expression` reads a setting that the manifest does not declare, returns the name of this setting.
    fn undeclared<'t>(&self, expression: &'t str) -> Option<&'t str> {
        let setting = expression.strip_prefix(self.settings_name)?.strip_prefix('.')?;
        (is_name(setting) && !self.settings.contains(setting)).then_some(setting)
    }

    /// Returns the text of the longest expression at a position.
    fn at(&self, position: Position) -> Option<String> {
        let mut longest: Option<String> = None;
        self.walk(|path| {
            if let Some(ASTNode::Expr(expression)) = path.last()
                && (expression.start_position() == position || expression.position() == position)
            {
                let found = text(expression);
                if longest.as_ref().is_none_or(|known| known.len() < found.len()) {
                    longest = Some(found);
                }
            }
        });
        longest.filter(|longest| longest != UNNAMED)
    }

    /// Returns the first result of `find` for the nodes at a position.
    fn found(&self, position: Position, find: impl Fn(&[ASTNode<'_>]) -> Option<String>) -> Option<String> {
        let mut found = None;
        self.walk(|path| {
            if found.is_none() && path.last().is_some_and(|node| node.position() == position) {
                found = find(path);
            }
        });
        found
    }

    fn walk(&self, mut visit: impl FnMut(&[ASTNode<'_>])) {
        self.ast.walk(&mut |path| {
            visit(path);
            true
        });
    }
}

/// Returns the settings that a hook reads but the manifest does not declare. Ignores reads with the operator `??`.
/// Returns no settings if the hook assigns to the settings parameter or to one of its fields, or declares a variable
/// with the parameter's name.
pub(super) fn undeclared(names: &ScriptNames<'_>) -> Vec<(String, Position)> {
    let (mut found, mut is_assigned) = (Vec::new(), false);
    let is_settings =
        |expression: &Expr| matches!(expression, Expr::Variable(name, ..) if name.1.as_str() == names.settings_name);
    names.walk(|path| match path.last() {
        Some(ASTNode::Stmt(Stmt::Var(variable, ..))) => is_assigned |= variable.0.name == names.settings_name,
        Some(ASTNode::Stmt(Stmt::Assignment(assignment))) => {
            is_assigned |= text(&assignment.1.lhs).starts_with(names.settings_name);
        }
        Some(ASTNode::Expr(Expr::Dot(member, ..))) if is_settings(&member.lhs) => {
            let property = match &member.rhs {
                Expr::Dot(inner, ..) | Expr::Index(inner, ..) => &inner.lhs,
                other => other,
            };
            // The operator `??` means that the setting may be absent.
            let is_optional = path.iter().any(|node| matches!(node, ASTNode::Expr(Expr::Coalesce(..))));
            if let Expr::Property(property, position) = property
                && !names.settings.contains(&property.2)
                && !is_optional
            {
                found.push((property.2.to_string(), *position));
            }
        }
        _ => {}
    });
    if is_assigned { Vec::new() } else { found }
}

/// Returns the text of the value to which the last node of `path` is applied. The last node is a property, a method or
/// an index.
fn target(path: &[ASTNode<'_>]) -> Option<String> {
    let (last, ancestors) = path.split_last()?;
    let ASTNode::Expr(last) = last else { return None };
    let mut child: &Expr = last;
    let mut parts: Vec<String> = match child {
        Expr::Index(indexed, ..) => vec![text(&indexed.lhs)],
        _ => Vec::new(),
    };
    for node in ancestors.iter().rev() {
        let ASTNode::Expr(parent @ (Expr::Dot(member, ..) | Expr::Index(member, ..))) = node else { break };
        let is_right = std::ptr::eq(&raw const member.rhs, child);
        match parent {
            Expr::Dot(..) if is_right => parts.push(text(&member.lhs)),
            // The expression in the brackets of an index does not depend on the value before the brackets.
            _ if is_right => break,
            _ => {}
        }
        child = parent;
    }
    parts.reverse();
    (!parts.is_empty()).then(|| parts.join("."))
}

/// Returns the source text of an expression. [`UNNAMED`] stands for the arguments of calls, and for parts such as
/// operators and strings.
fn text(expression: &Expr) -> String {
    match expression {
        Expr::Variable(name, ..) => name.1.to_string(),
        Expr::Property(property, _) => property.2.to_string(),
        Expr::MethodCall(call, _) | Expr::FnCall(call, _) if is_name(&call.name) => format!("{}({UNNAMED})", call.name),
        Expr::Dot(member, ..) => format!("{}.{}", text(&member.lhs), text(&member.rhs)),
        Expr::Index(member, ..) => format!("{}[{}]", text(&member.lhs), text(&member.rhs)),
        Expr::IntegerConstant(number, _) => number.to_string(),
        Expr::Unit(_) => UNIT.to_owned(),
        _ => UNNAMED.to_owned(),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}
