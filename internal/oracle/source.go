package oracle

import (
	"errors"
	"io"

	"github.com/mcpflood/mcpflood/history"
)

// Cursor walks a history from its start. Next returns [io.EOF] after the last
// record. A Cursor that is an [io.Closer] is closed after use.
type Cursor interface {
	Next() (history.Record, error)
}

// Source opens a history; each call starts anew and gives the same records.
type Source func() (Cursor, error)

// From makes a Source of any opener, such as one that returns *history.Reader.
func From[C Cursor](open func() (C, error)) Source {
	return func() (Cursor, error) {
		c, err := open()
		if err != nil {
			return nil, err
		}
		return c, nil
	}
}

// walk hands every record to f with its number, from 0.
func walk(open Source, f func(seq int64, rec *history.Record)) (err error) {
	c, err := open()
	if err != nil {
		return err
	}
	if closer, ok := c.(io.Closer); ok {
		defer func() { err = errors.Join(err, closer.Close()) }()
	}
	for seq := int64(0); ; seq++ {
		rec, err := c.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f(seq, &rec)
	}
}
