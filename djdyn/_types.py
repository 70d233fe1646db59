"""Array types by the names of the field."""

from jaxtyping import Array, Float


Scalar = Float[Array, ""]
Vec3 = Float[Array, "3"]
Mat3 = Float[Array, "3 3"]
Quat = Float[Array, "4"]
Vec6 = Float[Array, "6"]
Mat6 = Float[Array, "6 6"]
