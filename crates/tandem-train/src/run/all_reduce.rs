//! The sum of gradients over all ranks.
//!
//! In: the gradients and losses of this rank. Out: their sums over all ranks, the same bits on every rank. Small
//! gradients travel in buckets, large ones alone: on the CPU they are sent from where they are, and the sum becomes a
//! tensor without a copy. While one is on its way, the next one is read from a GPU; on the CPU there is nothing to wait
//! for, and the training thread carries on the sums itself. A rank without a batch adds negative zeros, which change no
//! bit of the sum. With two ranks there is only one order of addition, so the sum is that of one process that
//! accumulates both batches.

use crate::TrainError;
use tandem_cluster::{Cluster, ClusterError, PendingSum};
use tandem_model::gradients::{GradientSum, ReduceError};
use tandem_model::network::voice::{Losses, Voice};
use tandem_model::weights::weights_of;
use tandem_model::{Device, Tensor, TensorData};

/// Values after which a bucket is sent: 4 MiB.
const BUCKET: usize = 1 << 20;
/// A gradient of so many values travels alone: 16 KiB. Messages take longer than a copy of less.
const ALONE: usize = 1 << 12;
/// Losses at the start of the first bucket.
const LOSSES: usize = 3;
/// The neutral element of addition: `0.0 + -0.0` is `0.0`, and `-0.0 + -0.0` stays `-0.0`.
const NOTHING: f32 = -0.0;

/// Sums gradients over all ranks.
pub struct AllReduce {
    cluster: Cluster,
    /// Number of values of each weight.
    sizes: Vec<usize>,
    device: Device,
    /// Whether gradients are in host memory.
    on_host: bool,
}

impl AllReduce {
    pub fn new(cluster: Cluster, voice: &Voice, device: &Device) -> AllReduce {
        let sizes: Vec<usize> =
            weights_of(voice).iter().map(|weight| weight.shape.iter().product()).collect();
        let (device, on_host) = (device.clone(), device.clone().inner() == Device::flex());
        AllReduce { cluster, sizes, device, on_host }
    }

    /// Called by every rank. `utterances` are those of all ranks.
    pub fn sum(
        &self,
        gradients: GradientSum,
        utterances: usize,
    ) -> Result<GradientSum, ReduceError> {
        let sent = self.send(gradients);
        let summed = sent.and_then(|sent| self.receive(sent, utterances));
        summed.map_err(|fault| ReduceError(Box::new(fault)))
    }

    /// Sends the buckets. The first one begins with the losses and with a flag for each weight that has a
    /// gradient.
    fn send(&self, gradients: GradientSum) -> Result<Vec<Bucket>, ReduceFault> {
        let mut head = vec![NOTHING; LOSSES];
        if let Some(losses) = &gradients.losses {
            let all = [&losses.prior, &losses.duration, &losses.flow];
            for (value, loss) in head.iter_mut().zip(all) {
                *value = values_of(loss.clone())?.first().copied().unwrap_or(NOTHING);
            }
        }
        let mut tensors = gradients.into_tensors();
        tensors.resize(self.sizes.len(), None);
        head.extend(tensors.iter().map(|tensor| if tensor.is_some() { 1.0 } else { 0.0 }));
        let all = tensors.into_iter().zip(&self.sizes).enumerate();
        let (alone, joined): (Vec<_>, Vec<_>) = all.partition(|(_, (_, size))| **size >= ALONE);
        let (mut buckets, mut bucket, mut weights) = (Vec::new(), head, Vec::new());
        // A bucket that grows is copied.
        let rest: usize = joined.iter().map(|(_, (_, size))| *size).sum();
        bucket.reserve_exact(rest.min(BUCKET + ALONE));
        for (weight, (tensor, &size)) in joined {
            match tensor {
                Some(tensor) => bucket.extend_from_slice(&values_of(tensor)?),
                None => bucket.resize(bucket.len() + size, NOTHING),
            }
            weights.push(weight);
            if bucket.len() >= BUCKET {
                let sum = self.start(std::mem::take(&mut bucket));
                buckets.push(Bucket { weights: std::mem::take(&mut weights), sum });
            }
        }
        if !bucket.is_empty() {
            buckets.push(Bucket { weights, sum: self.start(bucket) });
        }
        for (weight, (tensor, &size)) in alone {
            let values = tensor.map_or_else(|| Ok(vec![NOTHING; size]), values_of)?;
            let sum = self.start(values);
            buckets.push(Bucket { weights: vec![weight], sum });
        }
        Ok(buckets)
    }

    fn receive(&self, buckets: Vec<Bucket>, utterances: usize) -> Result<GradientSum, ReduceFault> {
        let mut tensors = vec![None; self.sizes.len()];
        let (mut flags, mut losses) = (Vec::new(), None);
        if self.on_host {
            self.cluster.complete_calls();
        }
        for Bucket { weights, sum } in buckets {
            let sum = sum.wait()?;
            let mut at = 0;
            if losses.is_none() {
                let scalar = |index: usize| Tensor::from_floats([sum[index]], &self.device);
                losses = Some(Losses { prior: scalar(0), duration: scalar(1), flow: scalar(2) });
                at = LOSSES + self.sizes.len();
                flags = sum[LOSSES..at].to_vec();
            }
            let length = sum.len();
            let bucket = Tensor::<1>::from_data(TensorData::new(sum, [length]), &self.device);
            for weight in weights {
                let part = at..at + self.sizes[weight];
                at = part.end;
                tensors[weight] = (flags[weight] > 0.0).then(|| bucket.clone().slice(part));
            }
        }
        Ok(GradientSum::new(tensors, utterances, losses))
    }

    fn start(&self, values: Vec<f32>) -> PendingSum {
        match self.on_host {
            true => self.cluster.queue_sum(values),
            false => self.cluster.start_sum(values),
        }
    }
}

/// Gradients on their way.
struct Bucket {
    /// Which weights.
    weights: Vec<usize>,
    sum: PendingSum,
}

#[derive(Debug, thiserror::Error)]
enum ReduceFault {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("the gradients cannot be read from the device: {0}")]
    Device(String),
}

/// The error of another rank, where that is why the gradients could not be summed.
pub(crate) fn lost_rank(error: ReduceError) -> TrainError {
    match error.0.downcast::<ReduceFault>() {
        Ok(fault) => match *fault {
            ReduceFault::Cluster(error) => error.into(),
            other => ReduceError(Box::new(other)).into(),
        },
        Err(other) => ReduceError(other).into(),
    }
}

/// The values of a tensor, without a copy if they are in host memory and nobody else uses them.
fn values_of(tensor: Tensor<1>) -> Result<Vec<f32>, ReduceFault> {
    tensor.try_into_vec_as().map_err(|error| ReduceFault::Device(format!("{error:?}")))
}
