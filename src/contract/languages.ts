/** Language names of the API with their ISO 639 codes: the two-letter code if there is one, then ISO 639-3. */
const CODES_BY_NAME: Readonly<Record<string, string>> = {
  Afrikaans: 'af afr',
  Albanian: 'sq sqi',
  Amharic: 'am amh',
  Arabic: 'ar ara',
  Armenian: 'hy hye',
  Assamese: 'as asm',
  Azerbaijani: 'az aze',
  Bashkir: 'ba bak',
  Basque: 'eu eus',
  Belarusian: 'be bel',
  Bengali: 'bn ben',
  Bosnian: 'bs bos',
  Breton: 'br bre',
  Bulgarian: 'bg bul',
  Cantonese: 'yue',
  Catalan: 'ca cat',
  Chinese: 'zh zho',
  Croatian: 'hr hrv',
  Czech: 'cs ces',
  Danish: 'da dan',
  Dutch: 'nl nld',
  English: 'en eng',
  Estonian: 'et est',
  Faroese: 'fo fao',
  Finnish: 'fi fin',
  French: 'fr fra',
  Galician: 'gl glg',
  Georgian: 'ka kat',
  German: 'de deu',
  Greek: 'el ell',
  Gujarati: 'gu guj',
  HaitianCreole: 'ht hat',
  Hausa: 'ha hau',
  Hawaiian: 'haw',
  Hebrew: 'he heb',
  Hindi: 'hi hin',
  Hungarian: 'hu hun',
  Icelandic: 'is isl',
  Indonesian: 'id ind',
  Italian: 'it ita',
  Japanese: 'ja jpn',
  Javanese: 'jv jav',
  Kannada: 'kn kan',
  Kazakh: 'kk kaz',
  Khmer: 'km khm',
  Korean: 'ko kor',
  Lao: 'lo lao',
  Latin: 'la lat',
  Latvian: 'lv lav',
  Lingala: 'ln lin',
  Lithuanian: 'lt lit',
  Luxembourgish: 'lb ltz',
  Macedonian: 'mk mkd',
  Malagasy: 'mg mlg',
  Malay: 'ms msa',
  Malayalam: 'ml mal',
  Maltese: 'mt mlt',
  Maori: 'mi mri',
  Marathi: 'mr mar',
  Mongolian: 'mn mon',
  Myanmar: 'my mya',
  Nepali: 'ne nep',
  Norwegian: 'no nor',
  Nynorsk: 'nn nno',
  Occitan: 'oc oci',
  Pashto: 'ps pus',
  Persian: 'fa fas',
  Polish: 'pl pol',
  Portuguese: 'pt por',
  Punjabi: 'pa pan',
  Romanian: 'ro ron',
  Russian: 'ru rus',
  Sanskrit: 'sa san',
  Serbian: 'sr srp',
  Shona: 'sn sna',
  Sindhi: 'sd snd',
  Sinhala: 'si sin',
  Slovak: 'sk slk',
  Slovenian: 'sl slv',
  Somali: 'so som',
  Spanish: 'es spa',
  Sundanese: 'su sun',
  Swahili: 'sw swa',
  Swedish: 'sv swe',
  Tagalog: 'tl tgl',
  Tajik: 'tg tgk',
  Tamil: 'ta tam',
  Tatar: 'tt tat',
  Telugu: 'te tel',
  Thai: 'th tha',
  Tibetan: 'bo bod',
  Turkish: 'tr tur',
  Turkmen: 'tk tuk',
  Ukrainian: 'uk ukr',
  Urdu: 'ur urd',
  Uzbek: 'uz uzb',
  Vietnamese: 'vi vie',
  Welsh: 'cy cym',
  Yiddish: 'yi yid',
  Yoruba: 'yo yor',
};

const ALL = Object.keys(CODES_BY_NAME);

const EUROPEAN = (
  'Bulgarian Croatian Czech Danish Dutch English Estonian Finnish French German Greek Hungarian Italian Latvian ' +
  'Lithuanian Maltese Polish Portuguese Romanian Slovak Slovenian Spanish Swedish Russian Ukrainian'
).split(' ');

export const TRANSCRIPTION_MODELS = ['asr-tdt-0.6b-v3', 'asr-large-v3-turbo'] as const;
export type TranscriptionModel = (typeof TRANSCRIPTION_MODELS)[number];

/** Names of the same models elsewhere. */
export const TRANSCRIPTION_MODEL_ALIASES: Readonly<Record<TranscriptionModel, string>> = {
  'asr-tdt-0.6b-v3': 'parakeet-tdt-0.6b-v3',
  'asr-large-v3-turbo': 'faster-whisper-large-v3-turbo',
};

export const LANGUAGES: Readonly<Record<TranscriptionModel, readonly string[]>> = {
  'asr-tdt-0.6b-v3': EUROPEAN,
  'asr-large-v3-turbo': ALL,
};

const fold = (text: string) => text.toLowerCase().replace(/[\s_-]/g, '');

const CODE_BY_SPELLING = new Map<string, string>();
for (const [name, codes] of Object.entries(CODES_BY_NAME)) {
  const [code] = codes.split(' ');
  for (const spelling of [name, ...codes.split(' ')]) CODE_BY_SPELLING.set(fold(spelling), code);
}

/**
 * ISO 639 code of a language that the model speaks, from its name or code in any case ("Haitian Creole", "deu", "DE").
 * @returns the two-letter code (three letters for Cantonese and Hawaiian, which have no shorter one); undefined if the
 *   language is unknown or not one of the model's
 */
export function languageCode(model: TranscriptionModel, language: string): string | undefined {
  const code = CODE_BY_SPELLING.get(fold(language));
  if (code === undefined) return undefined;
  return LANGUAGES[model].some((name) => CODES_BY_NAME[name].split(' ')[0] === code) ? code : undefined;
}
