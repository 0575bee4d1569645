package compiler

// destroy calls the destructors of the local variables from that one of the scope, the newest first. PRI, which may hold a result, keeps its value.
//
// The variables that end are those that the control flow leaves, also when it leaves several blocks at once by break, continue or a goto back; there the
// reference compiler forgets all but the innermost. A goto forward calls no destructor, as in the reference: the blocks around the label are not known yet.
// A return ends the arguments that were passed by value too.
func (c *compiler) destroy(from int) {
	saved := false
	for i := len(c.scope) - 1; i >= from; i-- {
		s := c.scope[i]
		if s.tag == 0 || s.kind != kindVar && s.kind != kindArray {
			continue
		}
		f := c.operator("~", s.tag, 0)
		if f == nil {
			continue
		}
		if !saved {
			saved = true
			c.emit(opPushPri, 0)
		}
		if f.sym.use&useNative == 0 && len(f.bodies) == 0 {
			c.report(c.here(), 4, f.operator)
		}
		s.use |= useRead
		tables := int32(0) // cells before the values of an array
		count := int32(1)
		for _, d := range s.dims {
			if tables += count; d == 0 {
				c.report(s.pos, 46, s.name.text)
				d = 1
			}
			count *= d
		}
		if len(s.dims) > 0 {
			tables-- // the last dimension has none
		}
		c.emit(opPushC, count)
		if s.local {
			c.emit(opAddrPri, s.value+4*tables)
		} else {
			c.emitSym(opConstPri, s, 4*tables)
		}
		c.emit(opPushPri, 0)
		c.emitCall(f, 2)
	}
	if saved {
		c.emit(opPopPri, 0)
	}
}
