// Package camera draws what the camera of a simulated robot sees of its world (package plane): the floor with its lines and cliffs, walls, things, cubes with
// markers, the charger and people. It is pure: no clock and no files; the same world, view, settings and number make the same bytes.
//
//	scene.go    the world as flat faces, and where each is in the picture
//	draw.go     row by row: which face each pixel sees, and how bright that is
//	surface.go  what faces look like: grain, panels, markers, the outline of a person
//	develop.go  light to bytes: exposure, gain, noise and tone curve; the automatic exposure
//
// Each face is a plane with two axes, so the distance and the place on it are quotients of linear functions of the pixel: a pixel costs two
// divisions, whatever it sees, and only the nearest face is shaded.
//
// What is simple on purpose: light has no shadows, a picture is taken at one moment (no rolling shutter, no blur), the lens has no distortion, people are flat and
// face the camera, and the robot does not see its own arm.
//
// Rows: VEC-VIS-03, part of VEC-VIS-01, part of VEC-VIS-02, part of VEC-VIS-11.
package camera
