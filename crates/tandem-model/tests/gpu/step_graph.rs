//! Steps in place against steps that write new weights; steps as CUDA graphs against the same steps without: every bit of
//! losses, weights and state.

use crate::gpu::real_voice;
use crate::{alone, batches, host_batch, placed};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use tandem_device::backend::DriverCounts;
use tandem_device::placement::OpenDevices;
use tandem_model::between_threads::flush;
use tandem_model::micro_batches::batch_gradients;
use tandem_model::network::layers::Compute;
use tandem_model::network::voice::Voice;
use tandem_model::optimizer::Optimizer;
use tandem_model::step_graph::{StepGraph, has_graphs};
use tandem_model::train_batch::{AlignedBatch, UploadedBatch};
use tandem_model::weights::{Weight, rounded_copy, weights_of};
use tandem_units::Seed;

const STEPS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    /// Each step writes new weights.
    NewBuffer,
    InPlace,
    Graph,
}

/// The bits of losses and norms, step after step; then those of weights and state.
type Bits = Vec<Vec<u32>>;

fn bits(tensor: Tensor<1>) -> Vec<u32> {
    tensor.try_into_vec_as::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

fn values(weights: Vec<Weight>) -> Bits {
    weights.into_iter().map(|weight| bits(weight.values)).collect()
}

fn train(how: How, compute: Compute, batches: &[AlignedBatch], device: &Device) -> Bits {
    let autodiff = device.clone().autodiff();
    let mut voice = Voice::with_compute(compute, &real_voice::config(), Seed(7), &autodiff);
    let mut rounded = compute.reduced_dtype().map(|dtype| rounded_copy(&voice, dtype));
    let mut optimizer = Optimizer::new(&voice);
    if compute.scales_losses() {
        optimizer = optimizer.scaling_losses(device);
    }
    let uploads: Vec<UploadedBatch> =
        batches.iter().map(|batch| batch.pack().upload(device)).collect();
    if how != How::NewBuffer {
        let computing = rounded.as_ref().unwrap_or(&voice);
        let sum = batch_gradients(computing, &uploads[0].tensors(), optimizer.loss_scale());
        let settings = real_voice::settings(1);
        optimizer.fix_in_place(&mut voice, rounded.as_mut(), sum.tensors(), &settings);
    }
    // Of another batch: none of its values may stay in the graph.
    let graph = (how == How::Graph).then(|| {
        let computing = rounded.as_ref().unwrap_or(&voice);
        StepGraph::capture(computing, &optimizer, &uploads[STEPS - 1], device).unwrap()
    });
    let mut found = Vec::new();
    let (mut results, mut launches) = (Vec::new(), 0);
    for (number, batch) in uploads.iter().enumerate() {
        let settings = real_voice::settings(number as u64 + 1);
        let Some(graph) = &graph else {
            let computing = rounded.as_ref().unwrap_or(&voice);
            let sum = batch_gradients(computing, &batch.tensors(), optimizer.loss_scale());
            results.push(optimizer.complete_step(&mut voice, rounded.as_mut(), sum, &settings));
            flush(device);
            continue;
        };
        let before = DriverCounts::now().unwrap();
        optimizer.prepare_step(batch.utterances, &settings);
        results.push(graph.run(batch));
        flush(device);
        let counts = DriverCounts::now().unwrap() - before;
        assert_eq!(counts.graphs, 1);
        launches = launches.max(counts.launches);
        assert_eq!(counts.synchronisations, 0, "step {number}");
        // The first one may need room for its result.
        assert!(number == 0 || counts.allocations == 0, "step {number}");
    }
    if how == How::Graph {
        eprintln!("a step with a graph: {launches} launches");
        assert!(launches <= 5, "{launches} launches");
    }
    // Copies keep their values while further steps change the weights.
    let copy = optimizer.copied(&voice);
    let encoder = optimizer.copied_field(&voice.encoder.valid(), "encoder");
    let averaged = optimizer.averaged(&voice);
    let state = optimizer.state();
    let computing = rounded.as_ref().unwrap_or(&voice).clone();
    let next = |optimizer: &Optimizer| {
        let scale = optimizer.loss_scale();
        let sum = batch_gradients(&computing, &uploads[0].tensors(), scale);
        drop(optimizer.change_in_place(sum));
        flush(device);
    };
    if optimizer.is_in_place() {
        // A step without a change, then one with it.
        optimizer.without_change(|| next(&optimizer));
        let now = optimizer.state();
        assert!(values(weights_of(&voice)) == values(weights_of(&copy)));
        assert!(values(now.square) == values(state.square.clone()));
        assert_eq!(now.loss_scale.map(bits), state.loss_scale.clone().map(bits));
        optimizer.prepare_step(1, &real_voice::settings(9));
        next(&optimizer);
        assert!(values(weights_of(&voice)) != values(weights_of(&copy)));
    }
    assert!(values(weights_of(&encoder)) == values(weights_of(&copy.encoder)));
    assert!(values(weights_of(&averaged)) == values(state.ema.clone()));
    found.extend(results.into_iter().map(bits));
    let all = [weights_of(&copy), state.mean, state.square, state.ema];
    found.extend(all.into_iter().flat_map(values));
    found
}

fn devices() -> OpenDevices {
    placed(0, 1).open().unwrap()
}

#[track_caller]
fn check(compute: Compute, tolerance: f32) {
    let batches = &batches(host_batch().mel())[..STEPS];
    let device = devices().model;
    let train = |how| train(how, compute, batches, &device);
    // The first steps tune kernels, and try candidates of which the last digits differ.
    train(How::NewBuffer);
    let (plain, in_place) = (train(How::NewBuffer), train(How::InPlace));
    assert!(has_graphs(&device));
    assert!(
        train(How::Graph) == in_place,
        "{compute:?}: other bits than the same steps without a graph"
    );
    // The compiler rounds a kernel that changes its input in another order.
    let floats = |bits: &Vec<u32>| bits.iter().copied().map(f32::from_bits).collect::<Vec<_>>();
    assert_eq!(in_place.len(), plain.len());
    for (found, truth) in in_place.iter().map(floats).zip(plain.iter().map(floats)) {
        let most = truth.iter().fold(1.0, |most: f32, value| most.max(value.abs()));
        let off = crate::largest(&found, &truth);
        assert!(off <= tolerance * most, "{compute:?}: off by {off} of {most}");
    }
}

#[test]
fn a_step_in_place_and_its_graph_compute_the_step() {
    let _alone = alone();
    check(Compute::Full, 1e-5);
}

#[test]
fn a_step_in_place_and_its_graph_compute_the_step_in_16_bits() {
    let _alone = alone();
    check(Compute::F16, 1e-2);
}
