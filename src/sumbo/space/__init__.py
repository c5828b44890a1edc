"""The search space: parameters, and the maps between their values and the unit cube."""

from sumbo.space.constraints import Known, Linear, SumTo
from sumbo.space.parameters import Categorical, Choice, Float, Int, Ordinal, Parameter
from sumbo.space.space import Bounds, Space, SpaceLike

__all__ = ["Bounds", "Categorical", "Choice", "Float", "Int", "Known", "Linear", "Ordinal", "Parameter", "Space"]
__all__ += ["SpaceLike", "SumTo"]
