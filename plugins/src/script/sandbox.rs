//! The interpreter that runs scripts. Scripts have no access to the clock, the network, files, randomness, modules or
//! `eval`, and all resources are limited.

use rhai::module_resolvers::DummyModuleResolver;
use rhai::packages::{Package, StandardPackage};
use rhai::{Engine, OptimizationLevel};

use super::{bounded_functions, functions, guard, variables};
use crate::limits::CallLimits;

/// Returns an interpreter with the host functions and these limits.
pub(super) fn engine(plugin: &str, limits: &CallLimits) -> Engine {
    let mut engine = Engine::new_raw();
    StandardPackage::new().register_into_engine(&mut engine);
    engine
        .set_module_resolver(DummyModuleResolver::new())
        .set_optimization_level(OptimizationLevel::Simple)
        .set_strict_variables(true)
        .disable_symbol("eval")
        .disable_symbol("import")
        .disable_symbol("export")
        .set_max_operations(limits.operations)
        .set_max_call_levels(limits.call_levels)
        .set_max_expr_depths(limits.expression_depth, limits.function_expression_depth)
        .set_max_variables(limits.variables)
        .set_max_functions(limits.functions)
        .set_max_modules(0)
        .set_max_string_size(limits.string_bytes)
        .set_max_array_size(limits.array_items)
        .set_max_map_size(limits.map_items)
        .set_max_strings_interned(256)
        .on_progress(guard::progress);
    variables::watch(&mut engine, limits);
    bounded_functions::register(&mut engine);
    functions::register(&mut engine, plugin);
    engine
}
