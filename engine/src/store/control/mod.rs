//! The control database: users, workspaces with their members and keys, servers, and the data that all workspaces
//! share.

pub mod activations;
pub mod catalog;
pub mod departures;
pub mod dump;
pub mod invitations;
pub mod keys;
pub mod members;
pub mod releases;
pub mod restores;
pub mod servers;
pub mod sign_in_codes;
pub mod sign_up;
pub mod signing_keys;
pub mod users;
pub mod workspaces;
