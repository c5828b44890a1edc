"""The search space: parameters, and the maps between their values and the unit cube."""

from sumbo.space.parameters import Categorical, Choice, Float, Int, Parameter
from sumbo.space.space import Bounds, Space, SpaceLike

__all__ = ["Bounds", "Categorical", "Choice", "Float", "Int", "Parameter", "Space", "SpaceLike"]
