export { Composer, type ComposerProps } from "./composer.js";
export { LeatProvider, type LeatProviderProps, Thread, type ThreadProps, useClient, useLive, useThread } from "./context.js";
export { ConversationList, type ConversationListProps, type Conversations, useConversations } from "./list.js";
export { Messages, type MessagesProps } from "./messages.js";
export { type PartComponents, type PartProps, Parts } from "./parts.js";
export { Requests } from "./requests.js";
