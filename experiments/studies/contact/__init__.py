"""Contact: elastic beds, impacts and friction.

Read `study`, then `model` (a body over a plane), `beds`, `impacts`, `slope`, `tyre`,
`top`, `treadmill`, and `toss` (gradients through impacts).
"""
