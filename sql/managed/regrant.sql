SELECT @extschema@.inbox_regrant();
