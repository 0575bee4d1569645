package vector

// Compact structure-tree names in the order of the wire's indices (VEC-BODY-20) or, for lights, of the tree (GOSTAI-MAP-V).
var (
	motorNames = []string{"wheelL", "wheelR", "lift", "head"}
	cliffNames = []string{"cliffFL", "cliffFR", "cliffBL", "cliffBR"}
	lightNames = []string{"led[0]", "led[1]", "led[2]", "led[3]"}
)
