// Package plane is the place that simulated robots live in: a floor with walls, cliffs, lines, things that can be pushed and a charger, and one
// robot on two treads. It is a pure step: no clock, no files; the same map, seed and calls make the same world, bit by bit.
//
//	maps.go   worlds as JSON; the built-in ones
//	shape.go  distances and rays between rounded convex shapes
//	world.go  the robot on its treads: walls, pushing, cliffs; what its sensors see
//	hand.go   what a person does to it: picked up, put down, tipped over; how it falls
//	inertia.go what it feels: acceleration and turning in the axes of its body
//	block.go  cubes: what a hand does to them, and what they feel of it
//	fork.go   a lift that carries a cube, and rolls it over
//
// SI units; X forward, Y left, Z up, angles counter-clockwise; pitch nose down and roll left side up are positive. Geometry and limits of
// a robot come from its body's simulator; numbers of the charger are own defaults, the source gives none. Products are rounded before they
// are added, by float64(), so that no processor does both at once.
//
// What is simple on purpose: the body is a bar with round ends, things keep their heading when they are pushed and push nothing else, and a
// robot that falls lies below until a hand brings it back. A cube on a lift keeps level, one that falls from it ends upright as it was, and no robot leans on one.
//
// Rows: VEC-HW-04, VEC-HW-15, VEC-HW-24, VEC-IO-20, VEC-IO-24, VEC-IMU-05 to 09.
package plane
