//! Products of large matrices, by the crate `gemm`, which the backend uses too.
//!
//! In: two matrices with any strides but negative ones. Out: their product, contiguous, with the same bits as the backend's. The backend
//! writes its result three times: zeros, a copy of the zeros in aligned memory, and the product. This one writes the
//! product only, to memory that can leave the tensor as a vector: the gradients that ranks send are not copied.

use burn::backend::flex::FlexTensor;
use burn::tensor::Shape;
use gemm::Parallelism;

use super::fused::tensor;

/// Multiplications that are worth more than one thread. As in the backend.
const PARALLEL: usize = 192 * 192 * 192;

/// `[rows, depth] * [depth, columns]`.
pub(super) fn matmul(left: &FlexTensor, right: &FlexTensor) -> FlexTensor {
    let (left, right) = (Matrix::of(left), Matrix::of(right));
    let [[rows, depth], [inner, columns]] = [left.shape, right.shape];
    assert_eq!(depth, inner, "the depth of both matrices");
    let count = rows * columns;
    let shape = Shape::new([rows, columns]);
    if count == 0 || depth == 0 {
        return tensor(vec![0.0; count], shape);
    }
    let work = count.saturating_mul(depth);
    let parallelism = if work >= PARALLEL { Parallelism::Rayon(0) } else { Parallelism::None };
    let mut product = Vec::with_capacity(count);
    // SAFETY: every element of both matrices is inside of its values, as `Matrix::of` has checked, and the result has
    // room for all rows and columns. Nothing is read from it, and all of it is written.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            depth,
            product.as_mut_ptr(),
            1,
            columns as isize,
            false,
            left.values.as_ptr(),
            left.strides[1],
            left.strides[0],
            right.values.as_ptr(),
            right.strides[1],
            right.strides[0],
            0.0_f32,
            1.0_f32,
            false,
            false,
            false,
            parallelism,
        );
        product.set_len(count);
    }
    tensor(product, shape)
}

struct Matrix<'a> {
    /// From the first element on.
    values: &'a [f32],
    shape: [usize; 2],
    /// Distances between rows and between columns.
    strides: [isize; 2],
}

impl Matrix<'_> {
    fn of(tensor: &FlexTensor) -> Matrix<'_> {
        let layout = tensor.layout();
        let shape: [usize; 2] = layout.shape().dims();
        let strides: [isize; 2] = layout.strides().try_into().expect("two dimensions");
        let values = &tensor.storage::<f32>()[layout.start_offset()..];
        let last = shape.iter().zip(strides).map(|(&count, stride)| {
            let stride = usize::try_from(stride).expect("rows and columns in order");
            count.saturating_sub(1).saturating_mul(stride)
        });
        let is_empty = shape.contains(&0);
        assert!(is_empty || last.sum::<usize>() < values.len(), "a matrix inside of its values");
        Matrix { values, shape, strides }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::backend::Flex;
    use burn::backend::flex::Layout;
    use burn::backend::ops::FloatTensorOps;
    use proptest::prelude::*;

    /// Rows that are `step` values apart, as they are or transposed.
    fn matrix(rows: usize, columns: usize, step: usize, transposed: bool) -> FlexTensor {
        let count = rows.saturating_sub(1) * step + columns + 1;
        let values = (0..count).map(|at| ((at * 7919) % 1009) as f32 * 1e-3 - 0.5).collect();
        let strides = vec![step as isize, 1];
        let layout = |shape: [usize; 2]| Layout::new(Shape::new(shape), strides.clone(), 1);
        let of = |shape| tensor(values, Shape::new([count])).with_layout(layout(shape));
        let found = of([rows, columns]);
        if transposed { Flex::float_swap_dims(found, 0, 1) } else { found }
    }

    fn bits(tensor: FlexTensor) -> Vec<u32> {
        tensor.storage::<f32>().iter().map(|value| value.to_bits()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn a_product_has_the_bits_of_the_backend(
            [rows, depth, columns] in [1_usize..90, 1_usize..90, 1_usize..90],
            overlap in 0_usize..9,
            transposed: [bool; 2],
        ) {
            let sides = [(rows, depth), (depth, columns)];
            let [left, right] = [0, 1].map(|side| {
                let ((rows, columns), turned) = (sides[side], transposed[side]);
                let (rows, columns) = if turned { (columns, rows) } else { (rows, columns) };
                matrix(rows, columns, (columns + 4).saturating_sub(overlap).max(1), turned)
            });
            let expected = Flex::float_matmul(left.clone(), right.clone());
            prop_assert_eq!(bits(matmul(&left, &right)), bits(expected));
        }
    }

    #[test]
    fn large_and_empty_products_have_the_bits_of_the_backend() {
        for [rows, depth, columns] in [[300, 200, 250], [0, 3, 2], [3, 2, 0]] {
            let (left, right) =
                (matrix(rows, depth, depth, false), matrix(depth, columns, columns, false));
            let expected = bits(Flex::float_matmul(left.clone(), right.clone()));
            assert_eq!(bits(matmul(&left, &right)), expected);
        }
        let nothing = matmul(&matrix(2, 0, 1, false), &matrix(0, 3, 3, false));
        assert_eq!(nothing.storage::<f32>(), [0.0; 6]);
    }

    #[test]
    fn the_values_of_a_product_are_not_copied() {
        let product = matmul(&matrix(40, 30, 30, false), &matrix(30, 20, 20, false));
        let at = product.storage::<f32>().as_ptr();
        let values: Vec<f32> = product.into_data().try_into_vec().unwrap();
        assert_eq!(values.as_ptr(), at);
    }

    #[test]
    #[should_panic = "a matrix inside of its values"]
    fn a_matrix_beyond_its_values_is_refused() {
        let values = tensor(vec![0.0; 8], Shape::new([8]));
        let beyond = values.with_layout(Layout::new(Shape::new([3, 3]), vec![3, 1], 0));
        matmul(&beyond, &matrix(3, 2, 2, false));
    }
}
