//! Everything this crate promises, on a real file system. One binary; cases that need another process, another user or
//! a mount start this binary again.

#[cfg(test)]
mod child;
#[cfg(all(test, feature = "faults"))]
mod faults;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod hidden;
#[cfg(test)]
mod locks;
#[cfg(test)]
mod mounts;
#[cfg(test)]
mod names;
#[cfg(test)]
mod races;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod remove;
#[cfg(test)]
mod resolve;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod state;
#[cfg(test)]
mod walk;
#[cfg(test)]
mod wall;
#[cfg(test)]
mod watch;
