"""Tables of eight further subjects with notes beside them, and questions for both, with right answers written by hand."""

# ruff: noqa: E501 - files are easier to read with one row on one line

from __future__ import annotations

FILES: dict[str, str] = {
    "league-table.csv": (
        "Team,Played,Won,Drawn,Lost,Goals for,Goals against,Points\n"
        "Harbour FC,10,7,1,2,21,9,22\n"
        "Mill Town,10,6,2,2,18,11,20\n"
        "North End,10,5,2,3,15,12,17\n"
        "Quarry United,10,3,3,4,12,14,12\n"
        "Dale Rovers,10,2,1,7,8,20,7\n"
        "Fen Athletic,10,1,3,6,9,17,6\n"
    ),
    "timetable.html": (
        "<html><body><h1>School timetable of class 7b</h1><table>\n"
        "<tr><th>Day</th><th>Lesson</th><th>Subject</th><th>Teacher</th><th>Room</th></tr>\n"
        "<tr><td>Monday</td><td>1</td><td>Maths</td><td>Ms Abel</td><td>12</td></tr>\n"
        "<tr><td>Monday</td><td>2</td><td>Biology</td><td>Mr Crane</td><td>Lab 1</td></tr>\n"
        "<tr><td>Monday</td><td>3</td><td>English</td><td>Ms Dorn</td><td>12</td></tr>\n"
        "<tr><td>Tuesday</td><td>1</td><td>Maths</td><td>Ms Abel</td><td>14</td></tr>\n"
        "<tr><td>Tuesday</td><td>2</td><td>Sport</td><td>Mr Holt</td><td>Gym</td></tr>\n"
        "<tr><td>Wednesday</td><td>1</td><td>English</td><td>Ms Dorn</td><td>12</td></tr>\n"
        "<tr><td>Wednesday</td><td>2</td><td>Maths</td><td>Ms Abel</td><td>12</td></tr>\n"
        "<tr><td>Thursday</td><td>1</td><td>Biology</td><td>Mr Crane</td><td>Lab 1</td></tr>\n"
        "<tr><td>Thursday</td><td>2</td><td>Art</td><td>Ms Dorn</td><td>Studio</td></tr>\n"
        "</table></body></html>"
    ),
    "bird-counts.csv": (
        "date;species;site;count;observer\n"
        "03.05.2024;Heron;Lake Orrin;4;Vera\n"
        "03.05.2024;Coot;Lake Orrin;17;Vera\n"
        "11.05.2024;Heron;Mud Creek;2;Tobias\n"
        "19.05.2024;Grebe;Lake Orrin;6;Vera\n"
        "02.06.2024;Coot;Mud Creek;9;Tobias\n"
        "16.06.2024;Heron;Lake Orrin;5;Mai\n"
        "30.06.2024;Grebe;Mud Creek;1;Mai\n"
    ),
    "rents.csv": (
        "Flat;Tenant;Rooms;Rent;Deposit;Since\n"
        "1A;Family Okoro;4;€ 1.250,00;€ 2.500,00;2019-08-01\n"
        "1B;Jan Pel;2;€ 780,50;€ 1.561,00;2021-02-01\n"
        "2A;Sia Lund;3;€ 990,00;€ 1.980,00;2018-11-15\n"
        "2B;(vacant);2;€ 800,00;;\n"
        "3A;Dr. Weiss;5;€ 1.600,00;€ 3.200,00;2023-05-01\n"
    ),
    "inventory.md": (
        "# Workshop inventory\n"
        "\n"
        "| Item | Quantity | Weight (kg) | Supplier | Last checked |\n"
        "|---|---|---|---|---|\n"
        "| Anvil | 2 | 55 | Brodt | 2024-01-10 |\n"
        "| Hammer | 14 | 1.2 | Brodt | 2024-02-03 |\n"
        "| Chisel | 30 | 0.3 | Keel & Sons | 2024-02-03 |\n"
        "| Saw | 6 | 0.9 | Keel & Sons | 2023-12-20 |\n"
        "| Vise | 3 | 18 | Lumo | 2024-03-15 |\n"
    ),
    "survey.csv": (
        "Respondent,District,Satisfaction,Minutes to work,Owns bike\n"
        "R1,East,4,25,yes\n"
        "R2,West,,40,no\n"
        "R3,East,5,10,yes\n"
        "R4,South,2,n/a,no\n"
        "R5,West,3,35,yes\n"
        "R6,South,,55,no\n"
        "R7,East,3,20,no\n"
        "Total,,17,185,3\n"
    ),
    "election.tsv": (
        "Candidate\tParty\tVotes\tShare\tDistrict\n"
        "Ida Rook\tGreen\t4,120\t41.2%\tNorth\n"
        "Sam Pike\tUnion\t3,880\t38.8%\tNorth\n"
        "Leo Fass\tCivic\t2,000\t20.0%\tNorth\n"
        "Nina Oak\tGreen\t1,500\t25.0%\tSouth\n"
        "Paul Rye\tUnion\t3,300\t55.0%\tSouth\n"
        "Uma Tan\tCivic\t1,200\t20.0%\tSouth\n"
    ),
    "bus-times.md": (
        "# Bus times\n"
        "\n"
        "| Line | From | To | Departure | Arrival | Fare |\n"
        "|---|---|---|---|---|---|\n"
        "| 4 | Station | Harbour | 06:15 | 06:40 | £2.10 |\n"
        "| 4 | Station | Harbour | 07:15 | 07:40 | £2.10 |\n"
        "| 9 | Station | Airport | 06:30 | 07:20 | £6.50 |\n"
        "| 9 | Station | Airport | 09:30 | 10:20 | £6.50 |\n"
        "| 12 | Market | University | 08:05 | 08:25 | £1.80 |\n"
    ),
    "league-news.md": (
        "# League news\n"
        "\n"
        "Harbour FC was founded in 1911 by dock workers. The manager of Harbour FC is Gwen Tarr. Mill Town plays at Weir Park, which seats 6,400 people. The record attendance at Weir Park was 7,012, against Dale Rovers in 1988. Dale Rovers fired its manager Otto Blick in May.\n"
    ),
    "school-notes.md": (
        "# School notes\n"
        "\n"
        "Mr Crane leads the chess club, which has 14 members. Ms Abel studied in Leeds. The gym was rebuilt in 2015 and cost 300,000 euros. The school has 420 pupils and 31 teachers. The oldest building of the school is the Studio, built in 1890.\n"
    ),
    "house-notes.md": (
        "# The house in Linden Street\n"
        "\n"
        "The house was built in 1927 by the architect Ruth Adler. The roof was renewed in 2016. Dr. Weiss is a dentist. The caretaker is Emil Hass, who lives in Vogel Street. The house has 12 parking spaces and the largest room of the house is the cellar.\n"
    ),
    "bird-notes.md": (
        "# Birds of Lake Orrin\n"
        "\n"
        "Lake Orrin is 14 metres deep and lies in the county of Brask. In 2023 the observers saw 3 sea eagles at the lake. Vera Sundt has led the count since 2009. The longest walk around the lake takes four hours.\n"
    ),
    "election-notes.md": (
        "# After the election\n"
        "\n"
        "Ida Rook is a teacher from Selby. The turnout was 61 percent. Paul Rye promised 200 new flats. The mayor of the town is Hal Dunn, who did not run again.\n"
    ),
    "bus-notes.md": (
        "# The bus company\n"
        "\n"
        "The bus company Swiftline owns 36 buses and employs 80 drivers. Its director is Anna Voss. The depot was opened in 1964. Line 9 carried 210,000 passengers last year.\n"
    ),
}
COMPUTED = (
    ("Which team has the most points?", "Harbour FC"),
    ("How many teams are there?", "6"),
    ("Which team lost the most games?", "Dale Rovers"),
    ("How many teams have more than 15 points?", "3"),
    ("What is the total number of goals for?", "83"),
    ("How many more points does Harbour FC have than Mill Town?", "2"),
    ("Which team conceded the fewest goals?", "Harbour FC"),
    ("What are the top 3 teams by points?", "Harbour FC, Mill Town, North End"),
    ("Which teams won fewer than 3 games?", "Dale Rovers, Fen Athletic"),
    ("What is the average number of points?", "14"),
    ("How many games did Mill Town win?", "6"),
    ("Which team has the second highest points?", "Mill Town"),
    ("How many lessons does Ms Abel teach?", "3"),
    ("Which subject has the most lessons?", "Maths"),
    ("How many lessons are there on Monday?", "3"),
    ("Who teaches Art?", "Ms Dorn"),
    ("How many lessons are in room 12?", "4"),
    ("How many different subjects are there?", "5"),
    ("How many lessons per day?", "Monday: 3; Tuesday: 2; Wednesday: 2; Thursday: 2"),
    ("Which teacher has the most lessons?", "Ms Abel, Ms Dorn"),
    ("How many teachers are there in the timetable?", "4"),
    ("What room is Sport in?", "Gym"),
    ("How many herons were counted?", "11"),
    ("How many coots were counted in June?", "9"),
    ("What is the total count at Lake Orrin?", "32"),
    ("Which species has the highest total count?", "Coot"),
    ("When was the last heron seen?", "2024-06-16"),
    ("What is the total count per species?", "Heron: 11; Coot: 26; Grebe: 7"),
    ("How many birds did Vera count?", "27"),
    ("Who counted the most birds?", "Vera"),
    ("How many birds were counted after 19 May 2024?", "15"),
    ("How many birds were counted per month?", "May 2024: 29; June 2024: 15"),
    ("What share of the count was at Mud Creek?", "27.27%"),
    ("What is the total rent?", "€5420.5"),
    ("Which flat has the highest rent?", "3A"),
    ("What is the average rent of flats with 2 rooms?", "€790.25"),
    ("How many flats have more than 3 rooms?", "2"),
    ("Which tenant has lived there the longest?", "Sia Lund"),
    ("How many flats cost less than € 1.000?", "3"),
    ("Which flat is the cheapest?", "1B"),
    ("What is the total deposit?", "€9241"),
    ("How much more is the rent of 3A than 1A?", "€350"),
    ("How many flats have no deposit?", "1"),
    ("How many rooms are there in total?", "16"),
    ("What is the median rent?", "€990"),
    ("How many tenants moved in before 2020?", "2"),
    ("How many hammers are there?", "14"),
    ("Which item is the heaviest?", "Anvil"),
    ("How many items were checked in February 2024?", "2"),
    ("What is the total weight of all items?", "75.4 kg"),
    ("Which supplier has the most items?", "Brodt, Keel & Sons"),
    ("How many items come from Brodt?", "2"),
    ("Which item was checked first?", "Saw"),
    ("Which items weigh more than 10 kg?", "Anvil, Vise"),
    ("How many chisels and saws do we have?", "36"),
    ("What is the total quantity per supplier?", "Brodt: 16; Keel & Sons: 36; Lumo: 3"),
    ("Which items were not checked in 2024?", "Saw"),
    ("How many respondents own a bike?", "3"),
    ("What is the average satisfaction?", "3.4"),
    ("How many respondents did not give a satisfaction?", "2"),
    ("What is the average satisfaction in the East?", "4"),
    ("What percentage of respondents own a bike?", "42.86%"),
    ("How many respondents live in the South?", "2"),
    ("What is the average satisfaction per district?", "East: 4; West: 3; South: 2"),
    ("Who has the longest way to work?", "R6"),
    ("What is the average minutes to work?", "30.8333"),
    ("How many respondents need more than 30 minutes?", "3"),
    ("How many respondents are there?", "7"),
    ("Who got the most votes?", "Ida Rook"),
    ("How many votes did the Green party get?", "5620"),
    ("Which party got the most votes?", "Union"),
    ("Who won in the South?", "Paul Rye"),
    ("Which candidate got the fewest votes in the North?", "Leo Fass"),
    ("How many votes were cast in total?", "16000"),
    ("What share of the votes went to Union?", "44.88%"),
    ("How many candidates got more than 30%?", "3"),
    ("What is the total number of votes per party?", "Green: 5620; Union: 7180; Civic: 3200"),
    ("How many candidates got more than 3,000 votes?", "3"),
    ("What was the share of Nina Oak?", "25.0%"),
    ("How many buses go to the airport?", "2"),
    ("When does the first bus to the airport leave?", "06:30"),
    ("What is the fare to the University?", "£1.80"),
    ("Which line is the most expensive?", "9"),
    ("How many buses leave before 07:00?", "2"),
    ("When is the last bus to the Harbour?", "07:15"),
    ("How many lines are there?", "3"),
    ("Which bus departs last?", "9"),
    ("How long does line 9 take?", "50 minutes"),
)
"""Questions that are computed over a table."""
STATED = (
    ("Who is the manager of Harbour FC?", "Gwen Tarr"),
    ("When was Harbour FC founded?", "1911"),
    ("How many people does Weir Park seat?", "6,400"),
    ("What was the record attendance at Weir Park?", "7,012"),
    ("How many members does the chess club have?", "14"),
    ("How many pupils does the school have?", "420"),
    ("How many teachers does the school have?", "31"),
    ("How many teachers are there at the school?", "31"),
    ("What is the oldest building of the school?", "Studio"),
    ("How much did the gym cost?", "300,000"),
    ("How many parking spaces does the house have?", "12"),
    ("What is the largest room of the house?", "cellar"),
    ("When was the roof renewed?", "2016"),
    ("Who built the house in Linden Street?", "Ruth Adler"),
    ("How deep is Lake Orrin?", "14 metres"),
    ("How many sea eagles did the observers see in 2023?", "3"),
    ("What is the longest walk around the lake?", "four hours"),
    ("What percentage was the turnout?", "61"),
    ("How many new flats did Paul Rye promise?", "200"),
    ("How many buses does Swiftline own?", "36"),
    ("How many drivers does the bus company employ?", "80"),
    ("How many passengers did line 9 carry?", "210,000"),
    ("When was the depot opened?", "1964"),
    ("Who is the mayor of the town?", "Hal Dunn"),
    ("Where does the caretaker live?", "Vogel Street"),
    ("Which team fired its manager?", "Dale Rovers"),
    ("Which candidate is a teacher?", "Ida Rook"),
    ("Which tenant is a dentist?", "Dr. Weiss"),
    ("How many buses are there?", "36"),
    ("How many drivers are there?", "80"),
    ("How many birds did the observers see in 2023?", "3"),
    ("Who has led the count since 2009?", "Vera Sundt"),
)
"""Questions that a note answers. A known answer contains the right one."""
