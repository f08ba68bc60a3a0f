-- Media past their time are forgotten by the objects that held them.
CREATE INDEX media_object ON media (object_key);
