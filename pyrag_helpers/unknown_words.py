"""Words by their role in a sentence that means "there is no answer", for each language.

Each class has a letter, which the grammar in `unknown` uses: n not · M never · z no · W without · x nothing · o none ·
k lacks · l insufficient · e enough · u unknown · K missing s sources · i information · q answer, question · E what is
often asked for · m I, we · f it, there, they v verbs of telling and finding · S say · V determine · Z know · p
participles of these · P weaker ones · G given U because · a auxiliaries · d do · b is, are · h possible · y impossible
· N needed · T other · L likely · H sorry D articles · A words that change nothing · r in, from · R about, for · t to ·
B beyond · w who, whether · c but · j only Any other word is O.
"""

from __future__ import annotations

ENGLISH = {
    "n": "not",
    "M": "never",
    "z": "no zero",
    "W": "without",
    "x": "nothing nowhere",
    "o": "none neither",
    "s": "document documents documentation passage passages text texts context contexts source sources article "
    "articles paragraph paragraphs excerpt excerpts snippet snippets material materials content contents page pages "
    "doc docs database corpus input prompt reference references results fact facts knowledge dataset statements",
    "i": "information info evidence data detail details indication record records clue clues basis specifics result "
    "match matches trace explanation idea access statement",
    "q": "answer answers question questions query response",
    "S": "mention mentions mentioning state states specify specifies say says indicate indicates disclose discloses "
    "tell tells reveal reveals",
    "Z": "know",
    "v": "stating specifying contain contains containing provide provides providing give gives giving saying include "
    "includes including support supports discuss discusses discussing describe describes address addresses offer "
    "offers list lists cover covers refer refers show shows make makes supply confirm clarify report reports note "
    "notes relate relates find see locate focus focuses talk talks deal deals concern concerns appear appears suggest "
    "name names answering go allow allows permit permits enable suffice suffices help assist comply fulfill fulfil",
    "V": "determine ascertain infer deduce conclude verify identify establish derive pinpoint judge decide respond "
    "resolve",
    "p": "mentioned stated specified disclosed documented indicated described discussed addressed determined answered "
    "inferred deduced ascertained concluded derived verified clarified revealed explained noted detailed referenced "
    "covered contained elaborated substantiated resolved answerable determinable discernible inferable deducible "
    "referred pinpointed",
    "P": "found known named listed shown recorded reported identified established confirmed located included said "
    "told seen apparent evident clear certain sure obvious present there exist exists existed applicable explicit "
    "conclusive",
    "G": "given provided available supplied presented attached retrieved above below existing accessible obtainable",
    "u": "unknown unclear unspecified undetermined uncertain unavailable unanswerable indeterminate inconclusive "
    "undeterminable unmentioned unstated unsure indeterminable unidentifiable undocumented ambiguous",
    "K": "missing absent silent unrelated irrelevant lacking",
    "l": "insufficient inadequate limited incomplete scarce insufficiently",
    "e": "enough sufficient adequate",
    "k": "lack lacks lacked omit omits fail fails failed neglect neglects",
    "d": "do",
    "a": "does did can could may might will would has have had having should must able",
    "b": "is are was were be been being remain remains remained seem seems am isnt",
    "h": "possible feasible",
    "y": "unable impossible incapable hard difficult infeasible",
    "m": "i we me us",
    "f": "it there they one",
    "D": "the a an this these those any all each every some its their my your our his her both either",
    "A": "explicitly directly clearly specifically currently still yet definitively actually here anywhere further "
    "also really certainly definitely precisely exactly readily relevant specific direct further additional useful "
    "reliable definitive concrete such more particular requested required exact corresponding matching supporting "
    "factual at time moment now so far reliably fully accurately conclusively confidently simply very verifiable "
    "search retrieval therefore thus hence consequently accordingly following various original underlying "
    "specifically ultimately presently final short single own certainty",
    "r": "in by from within among on upon through under into inside throughout across with using based according per",
    "R": "about regarding concerning for of over as related",
    "t": "to",
    "w": "who whom whose what which when where why how whether if that",
    "c": "but however although though while whereas nor except",
    "j": "only just solely merely primarily mainly exclusively instead",
    "H": "sorry unfortunately regrettably afraid apologize apologies apologise regret sadly alas hmm ai language "
    "model assistant chatbot",
    "B": "beyond outside",
    "T": "other another different else",
    "N": "needed necessary",
    "E": "date dates birth death birthplace birthdate birthday hometown birthyear name names year years month town "
    "city place country nationality location age number title identity cause reason origin spouse wife husband father "
    "mother parents author director composer founder owner creator population height length",
    "U": "because since due",
    "L": "likely probably possibly perhaps presumably guess maybe probable",
}  # fmt: skip

# Whole replies that mean "unknown" in any language, in lower case and without punctuation around them.
_SENTINELS = """
    unknown · insufficient · not enough · not there · n/a · n.a · n. a · null · not applicable · idk · dunno ·
    no clue · no idea · i have no clue · unbekannt · keine angabe · keine angaben · k.a · k. a · weiß nicht ·
    weiss nicht · inconnu · inconnue · aucune idée · desconocido · desconocida · se desconoce · s/d · sconosciuto ·
    sconosciuta · ignoto · desconhecido · desconhecida · onbekend · nieznany · nieznana · nieznane · nie wiadomo ·
    nie wiem · brak informacji · brak danych · nie podano · neznámý · neznámé · není známo · nevím · okänd · okänt ·
    vet ej · vet inte · ukjent · ukendt · tuntematon · ei tiedossa · en tiedä · ismeretlen · nem tudom · necunoscut ·
    nu știu · bilinmiyor · bilmiyorum · belirtilmemiş · неизвестно · неизвестен · неизвестна · нет данных ·
    нет информации · нет ответа · не указано · не упоминается · не упомянуто · не знаю · я не знаю · невідомо ·
    не вказано · άγνωστο · غير معروف · غير مذكور · لا أعرف · غير محدد · غير متوفر · لا توجد معلومات · לא ידוע ·
    अज्ञात · पता नहीं · ज्ञात नहीं · không rõ · không biết · không có thông tin · không được đề cập ·
    tidak diketahui · tidak disebutkan · tidak ada informasi · ไม่ทราบ · ไม่มีข้อมูล · 不明 · 未詳 · 不詳 · 불명 ·
    미상 · 모름 · 未知 · 不详
"""
SENTINELS = frozenset(" ".join(_SENTINELS.split()).split(" · "))

FOREIGN = {
    "de": {
        "n": "nicht nie nirgends",
        "z": "kein keine keinen keiner keinerlei keinem ohne",
        "x": "nichts",
        "s": "dokument dokumente dokumenten dokuments text texte texten kontext quelle quellen passage passagen "
        "textpassagen artikel abschnitte abschnitten unterlagen material fakten auszug auszügen auszüge materialien",
        "i": "information informationen info infos angabe angaben hinweis hinweise daten beleg belege antwort",
        "p": "erwähnt genannt angegeben spezifiziert bestimmt ermittelt beantwortet beschrieben aufgeführt "
        "festgestellt belegt beantworten bestimmen ermitteln feststellen enthalten hervor erwähnen nennen sagen "
        "liefern geben enthält",
        "P": "bekannt gefunden verfügbar ersichtlich vorhanden klar eindeutig möglich sicher",
        "G": "gegebenen bereitgestellten vorliegenden angegebenen vorhandenen verfügbaren",
        "u": "unbekannt unklar unbestimmt ungewiss",
        "l": "unzureichende unzureichend ungenügende",
        "e": "genug genügend ausreichend ausreichende ausreichenden",
        "V": "weiß weiss",
        "y": "unmöglich",
        "a": "kann können konnte lässt wird werden wurde geht gibt",
        "b": "ist sind war waren bleibt",
        "m": "ich wir",
        "f": "es sie dies das",
        "D": "die der den dem des ein eine einen diese diesen dieser zu zur",
        "A": "leider hier explizit direkt ausdrücklich eindeutig dazu darüber sich sein",
        "r": "in im aus von anhand laut",
    },
    "fr": {
        "n": "pas non ne n jamais",
        "z": "aucun aucune sans",
        "x": "rien",
        "s": "document documents texte textes contexte passage passages source sources article articles extraits "
        "extrait faits",
        "i": "information informations mention donnée données indication précision réponse élément éléments",
        "p": "mentionné mentionnée mentionnés mentionnées précisé précisée spécifié spécifiée indiqué indiquée "
        "déterminé déterminée déterminer répondre établir mentionne mentionnent précise précisent indique indiquent "
        "contiennent contient fournissent fournit disent dit donné donnée identifier",
        "P": "connu connue trouvé trouvée disponible clair fourni fournie fournies disponibles applicable",
        "G": "fournis fournies donnés donnés",
        "u": "inconnu inconnue indéterminé indéterminée incertain",
        "l": "insuffisante insuffisantes insuffisant",
        "e": "assez suffisamment suffisante suffisantes",
        "V": "sais sait",
        "y": "impossible",
        "a": "peut peux possible permet permettent puis",
        "b": "est sont était reste sont",
        "m": "je nous on",
        "f": "il cela ce c y a",
        "D": "le la les l un une des du de d ces cette",
        "A": "malheureusement explicitement clairement ici",
        "r": "dans par à selon",
    },
    "es": {
        "n": "no nunca tampoco",
        "z": "ningún ninguna ninguno sin",
        "x": "nada",
        "s": "documento documentos texto textos contexto pasaje pasajes fuente fuentes artículo artículos fragmentos "
        "hechos",
        "i": "información informacion datos dato mención respuesta detalles evidencia",
        "p": "mencionado mencionada especificado especificada indicado indicada determinado determinar responder "
        "menciona mencionan especifica especifican indica indican proporciona proporcionan contiene contienen dicen "
        "dice establecer identificar proporcionado",
        "P": "conocido encontrado encontrada disponible claro aplicable consta encuentra encuentro",
        "G": "proporcionados proporcionado dados disponibles",
        "u": "desconocido desconocida indeterminado incierto",
        "l": "insuficiente insuficientes",
        "e": "suficiente suficientes",
        "V": "sé sabe sabemos",
        "y": "imposible",
        "a": "puede puedo posible hay puedo",
        "b": "es está están son",
        "m": "yo nosotros",
        "f": "lo ello esto se",
        "D": "el la los las un una de del",
        "A": "lamentablemente desafortunadamente explícitamente",
        "r": "en por según con a",
    },
    "it": {
        "n": "non mai",
        "z": "nessun nessuna nessuno senza",
        "x": "niente nulla",
        "s": "documento documenti testo testi contesto passaggio passaggi fonte fonti brani brano fatti",
        "i": "informazione informazioni dati dato menzione risposta dettagli",
        "p": "determinarlo menzionato menzionata specificato specificata indicato indicata determinato determinare "
        "rispondere menzionano menziona specificano forniscono contengono indicano dicono stabilire fornito",
        "P": "noto nota trovato disponibile chiaro applicabile disponibili",
        "G": "forniti dati",
        "u": "sconosciuto sconosciuta ignoto ignota indeterminato incerto",
        "l": "insufficienti insufficiente",
        "e": "sufficienti abbastanza sufficiente",
        "V": "so sa",
        "y": "impossibile",
        "a": "può posso possibile",
        "b": "è sono",
        "m": "io noi",
        "f": "lo ci si",
        "D": "il la i gli le un una di del dei nei nel nelle",
        "A": "purtroppo esplicitamente",
        "r": "in da per secondo",
    },
    "pt": {
        "n": "não nao nunca",
        "z": "nenhum nenhuma sem",
        "x": "nada",
        "s": "documento documentos texto textos contexto trecho trechos fonte fontes passagens",
        "i": "informação informações dados menção resposta detalhes",
        "p": "mencionado mencionada especificado especificada indicado informado determinado determinar responder "
        "mencionam menciona especificam fornecem contêm indicam dizem fornecido",
        "P": "conhecido encontrado encontrada disponível claro aplicável consta",
        "G": "fornecidos fornecido",
        "u": "desconhecido desconhecida indeterminado incerto",
        "l": "insuficiente insuficientes",
        "e": "suficiente suficientes",
        "V": "sei sabe",
        "y": "impossível",
        "a": "pode posso possível há foi",
        "b": "é está são",
        "m": "eu nós",
        "f": "isso",
        "D": "o a os as um uma de do dos da das nos no",
        "A": "infelizmente explicitamente",
        "r": "em por segundo com",
    },
    "nl": {
        "n": "niet nooit",
        "z": "geen zonder",
        "x": "niets",
        "s": "document documenten tekst teksten context bron bronnen passages",
        "i": "informatie gegevens vermelding antwoord",
        "p": "vermeld genoemd gespecificeerd bepaald bepalen beantwoorden vermelden vermeldt noemen bevatten",
        "P": "bekend gevonden beschikbaar duidelijk",
        "G": "verstrekte gegeven",
        "u": "onbekend onduidelijk onbepaald",
        "l": "onvoldoende",
        "e": "genoeg voldoende",
        "V": "weet",
        "y": "onmogelijk",
        "a": "kan kunnen wordt worden",
        "b": "is zijn was",
        "m": "ik wij",
        "f": "het dit er",
        "D": "de een deze",
        "A": "helaas hier",
        "r": "in uit op van",
    },
    "ru": {
        "n": "не нет ни",
        "z": "нет отсутствует отсутствуют",
        "x": "ничего",
        "s": "документе документах документы документов тексте тексты текстах контексте источниках источники документ "
        "текст контекст фактах",
        "i": "информации информация данных данные сведений ответ ответа упоминаний",
        "p": "указано указан указана упоминается упомянуто упоминают содержат содержит сказано определить ответить "
        "установить говорится указывают",
        "P": "известно найдено ясно доступно",
        "G": "предоставленных предоставленные данных",
        "u": "неизвестно неизвестен неизвестна неясно",
        "l": "недостаточно",
        "e": "достаточно",
        "V": "знаю могу",
        "y": "невозможно нельзя",
        "a": "можно могу",
        "b": "был была",
        "m": "я мы",
        "f": "это об этом",
        "D": "эти этих",
        "A": "к сожалению прямо явно",
        "r": "в из на по для",
    },
}  # fmt: skip
