package robot

import "slices"

// The formats of images by their number (GOSTAI-IF-17.6); 100 is ours (GOSTAI-EXT-06).
const (
	FormatUnknown = iota
	FormatRGB
	FormatYCbCr
	FormatJPEG
	FormatPPM
	FormatYUV422
	FormatGrey8
	FormatGrey4
	FormatYUV411
	FormatNV12
	FormatYUV420
	FormatRGB565 = 100
)

// ClosestFormat returns what a camera that can make the formats in supported should make when asked for want: that, else one of the same
// class, compressed or raw, else RGB, else JPEG, else whatever it has first (GOSTAI-IF-17.12).
func ClosestFormat(want int, supported []int) int {
	if slices.Contains(supported, want) {
		return want
	}
	for _, f := range supported {
		if f != FormatUnknown && (f == FormatJPEG) == (want == FormatJPEG) && want != FormatUnknown {
			return f
		}
	}
	for _, f := range []int{FormatRGB, FormatJPEG} {
		if slices.Contains(supported, f) {
			return f
		}
	}
	if len(supported) == 0 {
		return FormatUnknown
	}
	return supported[0]
}
