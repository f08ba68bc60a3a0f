import { fillOrigin, mountTabs } from './quickstart.ts';
import { mountReference } from './reference.ts';

fillOrigin();
mountTabs();
mountReference();
