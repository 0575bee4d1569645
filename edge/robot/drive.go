package robot

// YawOfTurn returns the change of heading, counter-clockwise, that Mobile's turn(x) asks for: it turns right for a positive x (GOSTAI-IF-15.2).
func YawOfTurn(x float64) float64 { return -x }
