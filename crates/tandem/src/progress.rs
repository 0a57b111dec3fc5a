//! What a person sees of a training run. (Signatures; bodies follow.)

use crate::printer::Printer;
use tandem_telemetry::record::Listener;

/// How far a run will go.
#[derive(Clone, Copy, Debug)]
pub struct Plan { pub first_step: u64, pub last_step: Option<u64>, pub epochs: Option<u32> }

/// The bar or the lines of a training run.
pub struct TrainProgress(());
impl TrainProgress {
    pub fn new(plan: Plan, out: &Printer) -> TrainProgress { todo!() }
    /// For [`tandem_telemetry::RecordOptions::listener`]; take it once.
    pub fn listener(&self) -> Listener { todo!() }
    /// Takes the bar off the screen, after the recording is finished.
    pub fn done(self) { todo!() }
}
