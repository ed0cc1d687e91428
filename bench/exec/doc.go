// Package exec runs the kinds of task that belong to the field: it turns specs and inputs into outcomes, with a runner for commands, a tree repository for
// sources and patches, and a content store for what comes out.
//
// Executors promise that an Outcome depends on nothing but the spec and the inputs, as far as the commands that they run allow.
package exec
