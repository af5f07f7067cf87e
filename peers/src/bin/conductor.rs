//! The official conductor. Each argument is the command line of one component of the chain; the last one is the agent.

use std::str::FromStr;

use agent_client_protocol::{AcpAgent, Result, Stdio};
use agent_client_protocol_conductor::{CommandLineComponents, ConductorImpl};

#[tokio::main]
async fn main() -> Result<()> {
    let chain = std::env::args().skip(1).map(|line| AcpAgent::from_str(&line)).collect::<Result<Vec<_>>>()?;
    ConductorImpl::new_agent("conductor", CommandLineComponents(chain)).run(Stdio::new()).await
}
