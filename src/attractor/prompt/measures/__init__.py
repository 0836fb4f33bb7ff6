"""The laws that tokens can have."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.prompt.measures.contract import Convolution, Measure, Pushforward, Tilt
    from attractor.prompt.measures.empirical import Empirical
    from attractor.prompt.measures.gaussian import Gaussian
    from attractor.prompt.measures.laplace import Laplace
    from attractor.prompt.measures.mixture import Mixture
    from attractor.prompt.measures.products import Product
    from attractor.prompt.measures.rademacher import Rademacher
    from attractor.prompt.measures.sphere import Sphere
    from attractor.prompt.measures.student_t import StudentT
    from attractor.prompt.measures.uniform import Uniform

__all__ = [
    "Convolution",
    "Empirical",
    "Gaussian",
    "Laplace",
    "Measure",
    "Mixture",
    "Product",
    "Pushforward",
    "Rademacher",
    "Sphere",
    "StudentT",
    "Tilt",
    "Uniform",
]

import_on_first_use(__name__)
