//! The official ACP conductor, for tests: each argument is the command line of one component of the chain, and the last
//! component is the agent.

use std::str::FromStr;

use agent_client_protocol::{AcpAgent, Result, Stdio};
use agent_client_protocol_conductor::{CommandLineComponents, ConductorImpl};

#[tokio::main]
async fn main() -> Result<()> {
    let chain = std::env::args().skip(1).map(|line| AcpAgent::from_str(&line)).collect::<Result<Vec<_>>>()?;
    ConductorImpl::new_agent("conductor", CommandLineComponents(chain)).run(Stdio::new()).await
}
