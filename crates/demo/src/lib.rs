//! The main job on one machine from one command.
